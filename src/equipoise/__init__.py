"""Experiments that treat people well and measure every arm accurately, with one dial between the two.

Names are loaded when first used, so that importing the package is quick; `__init__.pyi` declares them.
"""

from importlib import import_module
from typing import Any

import lazy_loader

from equipoise._version import __version__ as __version__

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in {"analysis", "metrics", "testing", "theory"}:
        return import_module(f"equipoise.{name}")
    return _load(name)
