"""Sweeps: many policies, parameters and horizons, played here or on a cluster, kept in files and resumed  [Sect. 5].

A `Study` says what to play, `read_study` reads one from a TOML file, `sweep` plays it and `summary` condenses it.
"""

from equipoise.sweeps.backends import BACKENDS
from equipoise.sweeps.configuration import parse_study, read_study, study_from_dict
from equipoise.sweeps.drawing import sweep_curves
from equipoise.sweeps.frames import checked_frame_path, write_frame
from equipoise.sweeps.playing import SweepInterrupted
from equipoise.sweeps.policy_tables import policy_from_text
from equipoise.sweeps.running import result_paths, sweep
from equipoise.sweeps.study import Study
from equipoise.sweeps.summaries import SummaryRow, summary

__all__ = [
    "BACKENDS",
    "Study",
    "SummaryRow",
    "SweepInterrupted",
    "checked_frame_path",
    "parse_study",
    "policy_from_text",
    "read_study",
    "result_paths",
    "study_from_dict",
    "summary",
    "sweep",
    "sweep_curves",
    "write_frame",
]
