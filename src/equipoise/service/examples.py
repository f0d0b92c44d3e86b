"""Answers as they look, for the OpenAPI document: one small experiment, told of by everything that is answered."""

from __future__ import annotations

from typing import Any

_MADE, _NOW = "2026-11-16T08:15:30.125000+00:00", "2026-11-17T09:41:07.860412+00:00"
_POLICY = {
    "name": "ForcingBalance",
    "reward_weight": 0.8,
    "forcing": 1.0,
    "floor": 0.0,
    "objective": {"name": "PowerObjective", "power": 0.5, "importance": None},
    "tracking": "difference",
    "window": 10.0,
    "mixing": 0.02,
}
_CONFIGURATION = {
    "format": "equipoise-experiment/1",
    "policy": _POLICY,
    "seed": 2024,
    "warm_up": 0,
    "control": "none",
    "control_share": 0.1,
    "reward_range": [0.0, 1.0],
    "direction": "maximise",
    "missing": {"name": "DropUnit", "window_seconds": 604800.0, "hold": False, "late": "ignore"},
    "stopping": [{"name": "Budget", "units": 2000}],
    "failure_probability": 0.05,
    "metadata": {"class": "4b"},
    "fresh_tracking": True,
}
_ASSIGNMENT = {
    "unit": "student-42",
    "arm": "number line",
    "number": 0,
    "probability": 0.85,
    "forced": True,
    "at": _NOW,
    "new": True,
}
_REWARD = {"unit": "student-42", "arm": "number line", "reward": 0.75, "counted": True, "new": True}


def _arm(name: str, assigned: int, rewarded: int, **numbers: float) -> dict[str, Any]:
    counts = {"assigned": assigned, "rewarded": rewarded, "pending": assigned - rewarded}
    none = dict.fromkeys(("held", "overdue", "defaulted", "dropped"), 0)
    return {"arm": name, "state": "active"} | counts | none | numbers


EXAMPLES: dict[str, dict[str, Any]] = {
    "Listing": {
        "experiments": [
            {
                "name": "fractions",
                "state": "enrolling",
                "created_at": _MADE,
                "policy": _POLICY,
                "n_arms": 3,
                "n_assigned": 200,
                "n_rewarded": 190,
            }
        ]
    },
    "Description": {
        "name": "fractions",
        "state": "enrolling",
        "created_at": _MADE,
        "arms": [
            {"name": "number line", "state": "active", "floor": 0.05},
            {"name": "pie", "state": "active", "floor": 0.05},
            {"name": "none", "state": "active", "floor": 0.1},
        ],
        "configuration": _CONFIGURATION,
    },
    "Assignment": _ASSIGNMENT,
    "Assignments": {
        "assignments": [
            _ASSIGNMENT | {"new": False},
            _ASSIGNMENT | {"unit": "student-43", "arm": "pie", "number": 1, "probability": 0.45, "forced": False},
        ]
    },
    "UnitState": _ASSIGNMENT | {"new": False, "state": "counted", "reward": 0.75, "counted": True},
    "ToldReward": _REWARD,
    "ToldRewards": {"rewards": [_REWARD]},
    "State": {
        "name": "fractions",
        "state": "enrolling",
        "created_at": _MADE,
        "at": _NOW,
        "policy": _POLICY,
        "direction": "maximise",
        "missing": "drop after 7 days; late rewards are only logged",
        "n_events": 391,
        "n_assigned": 200,
        "n_rewarded": 190,
        "n_pending": 10,
        "n_held": 0,
        "n_overdue": 0,
        "n_defaulted": 0,
        "n_dropped": 0,
        "average_reward": 0.56,
        "interval": "empirical Bernstein",
        "confidence": 0.95,
        "arms": [
            _arm("number line", 66, 62, mean=0.55, std=0.29, low=0.3, high=0.8, half_width=0.25)
            | {"target_share": 0.34, "actual_share": 0.33},
            _arm("pie", 90, 88, mean=0.62, std=0.26, low=0.42, high=0.82, half_width=0.2)
            | {"target_share": 0.43, "actual_share": 0.45},
            _arm("none", 44, 40, mean=0.44, std=0.35, low=0.09, high=0.79, half_width=0.35)
            | {"target_share": 0.23, "actual_share": 0.22},
        ],
        "stopping": [{"rule": "budget", "met": False, "now": 200, "goal": 2000}],
    },
    "Past": {
        "arms": ["number line", "pie", "none"],
        "number": [1, 391],
        "at": [_MADE, _NOW],
        "assigned": [[0, 0, 0], [66, 90, 44]],
        "rewarded": [[0, 0, 0], [62, 88, 40]],
        "mean": [[None, None, None], [0.55, 0.62, 0.44]],
        "std": [[None, None, None], [0.29, 0.26, 0.35]],
    },
    "Events": {
        "events": [
            {
                "number": 2,
                "kind": "assigned",
                "at": _NOW,
                "who": "web site",
                "unit": "student-42",
                "arm": "number line",
                "decision": 0,
                "reward": None,
                "probability": 0.85,
                "forced": True,
                "counted": None,
                "replaced": None,
                "details": {"attributes": {"school": "north"}},
            }
        ],
        "next": 2,
    },
    "WhatIf": {
        "reward_weight": 0.9,
        "present_weight": 0.8,
        "allocation": {"number line": 0.29, "pie": 0.53, "none": 0.18},
        "present_allocation": {"number line": 0.34, "pie": 0.43, "none": 0.23},
        "reward": 0.57,
        "present_reward": 0.55,
        "error": 0.58,
        "present_error": 0.54,
    },
    "Verification": {"n_events": 391, "n_decisions": 200, "seconds": 0.07},
    "Rebuilt": {"changed": False},
    "Health": {"status": "ok"},
}
"""What each kind of answer looks like, by the name of its model."""
