"""What a simulation returns, as one object that can be measured, cut, joined, tabulated and saved."""

from equipoise.runs.runs import Runs

__all__ = ["Runs"]
