"""Show the settings of an experiment: what it was made with and cannot change, and what can."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.console.acts import quoted
from equipoise.console.addresses import address
from equipoise.console.help_page import counted
from equipoise.console.visits import Shown, Visit
from equipoise.experiment.dial import dial_words

PATH = "e/{name}/settings"


@dataclass(frozen=True)
class Setting:
    """A setting and what it is."""

    name: str
    value: str


@dataclass(frozen=True)
class ActLink:
    """A link to a page that asks before something is done."""

    text: str
    address: str
    is_danger: bool = False


@dataclass(frozen=True)
class ArmSetting:
    """An arm, its state, the share kept for it, and what can be done with it."""

    name: str
    state: str
    floor: float
    acts: tuple[ActLink, ...]


@dataclass(frozen=True)
class SettingsView:
    """The settings of an experiment.

    `fixed` is what it was made with, `dial` how the dial is set now, `acts` what can be done with the experiment.
    """

    state: str
    fixed: tuple[Setting, ...]
    metadata: str | None
    dial: str
    dial_act: ActLink | None
    description: tuple[Setting, ...]
    describe: ActLink | None
    arms: tuple[ArmSetting, ...]
    add_arm: ActLink | None
    acts: tuple[ActLink, ...]
    rehearse: ActLink | None
    done: str | None


def show(visit: Visit) -> Shown:
    """Show the settings."""
    described, status = visit.description, visit.status
    configuration, state, name = described["configuration"], described["state"], described["name"]
    may = visit.viewer.changes and state != "finished"

    def link(text: str, act: str, *, arm: str | None = None, is_danger: bool = False) -> ActLink:
        there = address(f"{PATH}/{act}", name=name) + ("" if arm is None else address("?arm={arm}", arm=arm))
        return ActLink(text, there, is_danger)

    acts = []
    if may:
        acts += {
            "enrolling": [link("Pause", "pause"), link("Stop", "stop", is_danger=True)],
            "paused": [link("Resume", "resume"), link("Stop", "stop", is_danger=True)],
        }.get(state, [])
        if configuration["missing"].get("window_seconds") is not None:
            acts.append(link("Settle windows that have passed", "settle"))
        acts.append(link("Finish", "finish", is_danger=True))
    arms = []
    for arm in described["arms"]:
        offered = []
        if may and arm["state"] != "retired":
            other = ("Pause", "pause-arm") if arm["state"] == "active" else ("Resume", "resume-arm")
            offered = [link(*other, arm=arm["name"]), link("Retire", "retire-arm", arm=arm["name"], is_danger=True)]
        arms.append(ArmSetting(arm["name"], arm["state"], arm["floor"], tuple(offered)))
    metadata = {key: value for key, value in configuration["metadata"].items() if key != "plan"}
    view = SettingsView(
        state=state,
        fixed=tuple(_fixed(configuration, status.confidence)),
        metadata=json.dumps(metadata, indent=2, ensure_ascii=False) if metadata else None,
        dial=_dial(configuration["policy"]),
        dial_act=link("Turn the dial", "weight") if may and _has_dial(configuration["policy"]) else None,
        description=tuple(_described(described["description"])),
        describe=link("Change the description", "describe") if visit.viewer.changes else None,
        arms=tuple(arms),
        add_arm=link("Add an arm", "add-arm") if may and state != "stopped" else None,
        acts=tuple(acts),
        rehearse=link("Rehearse: a copy under another name", "rehearse")
        if visit.viewer.changes and visit.viewer.experiment is None
        else None,
        done=_DONE.get(visit.query.get("done", "")),
    )
    return Shown("settings.html", view, "Settings")


_DONE = {
    "pause": "Paused: no new people for now.",
    "resume": "Resumed: new people get an arm again.",
    "stop": "Stopped: no new people any more.",
    "settle": "Windows that have passed are settled.",
    "finish": "Finished.",
    "weight": "The dial is turned, from the next person on.",
    "describe": "The description is changed.",
    "add-arm": "The arm is added.",
    "pause-arm": "The arm is paused.",
    "resume-arm": "The arm is resumed.",
    "retire-arm": "The arm is retired.",
}


def _described(description: Mapping[str, Any]) -> list[Setting]:
    """Return what the experiment is about, as far as that is said."""
    found = [Setting(label, description[name]) for name, label in LABELS.items() if name in description]
    return found + [Setting(quoted(arm), text) for arm, text in description.get("arms", {}).items()]


LABELS = {
    "title": "Title",
    "question": "Question",
    "outcome": "What people do whose reward is 1",
    "reward_unit": "Unit of rewards that are numbers",
    "owner": "Who is responsible",
}
"""What the texts of a description are called."""


def _has_dial(policy: Mapping[str, Any]) -> bool:
    return policy.get("reward_weight") is not None or policy.get("information_kept") is not None


def _dial(policy: Mapping[str, Any]) -> str:
    kept = policy.get("information_kept") is not None
    names = ("information_kept", "information_about", "smallest_difference") if kept else ("reward_weight",)
    found = {name: policy[name] for name in names if policy.get(name) is not None}
    if kept:
        found.setdefault("information_about", "average")
    text = dial_words(found)
    return f"{text[0].upper()}{text[1:]}"


def _fixed(configuration: Mapping[str, Any], confidence: float) -> list[Setting]:
    """Return what cannot change, in words."""
    low, high = configuration["reward_range"] or (None, None)
    cap = configuration.get("reward_cap")
    control = configuration["control"]
    most = configuration.get("most_units")
    covariates = configuration.get("covariates") or []
    found = [
        Setting("Good rewards are", "large" if configuration["direction"] == "maximise" else "small"),
        Setting(
            "Rewards lie", range_words(low, high) + ("" if cap is None else f"; larger than {cap:g} count as that")
        ),
        Setting("Missing rewards", missing_words(configuration["missing"])),
        Setting(
            "Control", "none" if control is None else f"{quoted(control)}, kept at {configuration['control_share']:.0%}"
        ),
        Setting("Stop when", "; ".join(map(rule_words, configuration["stopping"])) or "no rule was declared"),
        Setting("Most people", "no limit" if most is None else f"{most:,}"),
        Setting("Warm-up", f"{counted(configuration['warm_up'], 'person', 'people')} for every arm first"),
        Setting("Intervals hold with", f"{100 * confidence:.4g}% for all arms and times together"),
        Setting("Policy", str(configuration["policy"]["name"])),
        Setting("Seed", str(configuration["seed"])),
    ]
    if covariates:
        found.append(Setting("Reports adjust for", ", ".join(covariates)))
    return found


def range_words(low: float | None, high: float | None) -> str:
    """Return a range of rewards in words.

    Examples
    --------
    >>> range_words(0, 1), range_words(0, None), range_words(None, None)
    ('between 0 and 1', 'at 0 or above', 'anywhere: no range was declared')
    """
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    if low is not None:
        return f"at {low:g} or above"
    return "anywhere: no range was declared" if high is None else f"at {high:g} or below"


def missing_words(missing: Mapping[str, Any]) -> str:
    """Return a rule for missing rewards in words."""
    from equipoise.experiment import MissingReward

    return MissingReward.from_dict(dict(missing)).describe()


def rule_words(rule: Mapping[str, Any]) -> str:
    """Return a stopping rule in words.

    Examples
    --------
    >>> rule_words({"name": "Budget", "units": 2000})
    '2,000 people are assigned'
    >>> rule_words({"name": "Precision", "half_width": 0.06, "of": "arms"})
    'every arm is known to within 0.06'
    """
    if rule["name"] == "Budget":
        return f"{rule['units']:,} people are assigned"
    if rule["name"] == "Deadline":
        return f"it is {rule['at']}"
    if rule["name"] == "Precision":
        what = "every difference" if rule.get("of") == "differences" else "every arm"
        return f"{what} is known to within {rule['half_width']:g}"
    if rule["name"] == "Decided":
        margin = rule.get("margin") or 0.0
        return "it is clear which arm is best" + (f", or choosing costs at most {margin:g}" if margin else "")
    return str(rule["name"])
