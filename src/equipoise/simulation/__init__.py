"""Play policies on arms, many times: exact, fast, and the same for any number of workers  [Sect. 5]."""

from equipoise.simulation.inputs import (
    LARGEST_HORIZON,
    checked_checkpoints,
    default_checkpoints,
    replication_numbers,
)
from equipoise.simulation.running import SimulationInterrupted, available_processors, simulate

__all__ = [
    "LARGEST_HORIZON",
    "SimulationInterrupted",
    "available_processors",
    "checked_checkpoints",
    "default_checkpoints",
    "replication_numbers",
    "simulate",
]
