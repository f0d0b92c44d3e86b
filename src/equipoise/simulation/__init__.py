"""Simulate policies on arms over many replications: exact, fast, and the same for any number of workers  [Sect. 5].

`simulate` plays policies once and returns `Runs`. A `Study` describes a sweep, `read_study` reads one from a TOML file,
`sweep` plays it and `summary` condenses it.
"""

from equipoise.simulation.run_files import checked_frame_path, write_frame
from equipoise.simulation.runs import Runs, SummaryRow, summary
from equipoise.simulation.simulator import (
    LARGEST_HORIZON,
    SimulationInterrupted,
    available_processors,
    checked_checkpoints,
    default_checkpoints,
    replication_numbers,
    simulate,
)
from equipoise.simulation.study import Study
from equipoise.simulation.study_file import parse_study, policy_from_text, read_study, study_from_dict
from equipoise.simulation.sweeps import SweepInterrupted, result_paths, sweep
from equipoise.simulation.workers import BACKENDS

__all__ = [
    "BACKENDS",
    "LARGEST_HORIZON",
    "Runs",
    "SimulationInterrupted",
    "Study",
    "SummaryRow",
    "SweepInterrupted",
    "available_processors",
    "checked_checkpoints",
    "checked_frame_path",
    "default_checkpoints",
    "parse_study",
    "policy_from_text",
    "read_study",
    "replication_numbers",
    "result_paths",
    "simulate",
    "study_from_dict",
    "summary",
    "sweep",
    "write_frame",
]
