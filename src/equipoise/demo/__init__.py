"""The demo: a published experiment, run again as a live one with simulated people who answer late or not at all."""

from equipoise.demo.show import run

__all__ = ["run"]
