"""The HTTP service: run durable experiments from programs in any language."""

from equipoise.service.asgi import create_app
from equipoise.service.server import ThreadedService
from equipoise.service.settings import Settings

__all__ = ["Settings", "ThreadedService", "create_app"]
