"""The HTTP service: a thin layer over durable experiments, for programs in any language."""

from equipoise.service.application import create_app
from equipoise.service.settings import Settings
from equipoise.service.threaded import ThreadedService

__all__ = ["Settings", "ThreadedService", "create_app"]
