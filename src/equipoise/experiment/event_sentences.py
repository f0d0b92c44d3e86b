"""An event of the log as one plain English sentence: who did what, and why. When it was stands beside it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from equipoise.experiment.dial import dial_words
from equipoise.experiment.records import Event


def sentence_of(event: Event) -> str:
    """Return an event as a sentence without a full stop: who did what, and why if that is known.

    Examples
    --------
    >>> import equipoise as eq
    >>> experiment = eq.Experiment.create("memory:", "mail", arms=["plain", "prize"], reward_weight=0.6, who="Ada")
    >>> experiment.change_weight(0.8, reason="prize is clearly ahead")
    >>> [sentence_of(event) for event in experiment.events()]
    ['Ada created the experiment with 2 arms', "Ada set the weight to 0.8 (was 0.6): 'prize is clearly ahead'"]
    """
    if event.kind == "noted":
        return _note(event)
    said = _WORDS.get(event.kind, _unknown)(event)
    reason = event.details.get("reason")
    return said if reason is None else f"{said}: {_quoted(reason)}"


def _quoted(text: Any) -> str:
    return f"'{text}'"


def _by(who: str | None, did: str, what: str, more: str = "", *, done: str | None = None, several: bool = False) -> str:
    """Return who did what, or that it was done where nobody is named."""
    if who is not None:
        return f"{who} {did} {what}{more}"
    return f"{what[0].upper()}{what[1:]} {'were' if several else 'was'} {done or did}{more}"


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def _created(event: Event) -> str:
    return _by(event.who, "created", "the experiment", f" with {_counted(len(event.details.get('arms', ())), 'arm')}")


def _assigned(event: Event) -> str:
    chance = "" if event.probability is None else f", with probability {event.probability:.4g}"
    return f"{_quoted(event.unit)} got {_quoted(event.arm)}{chance}"


def _rewarded(event: Event) -> str:
    kept = "" if event.counted else "; it is not in the estimates"
    return _by(event.who, "recorded", f"the reward {event.reward:g} of {_quoted(event.unit)}", kept)


def _settled(event: Event) -> str:
    return f"The window of {_quoted(event.unit)} passed: the reward {event.reward:g} counts"


def _expired(event: Event) -> str:
    instead = f"; {event.reward:g} counts instead" if event.counted and event.reward is not None else ""
    return f"The window of {_quoted(event.unit)} passed without a reward{instead}"


def _corrected(event: Event) -> str:
    was = "" if event.replaced is None else f" (was {event.replaced:g})"
    return _by(event.who, "corrected", f"the reward of {_quoted(event.unit)}", f" to {event.reward:g}{was}")


def _withdrawn(event: Event) -> str:
    return _by(event.who, "withdrew", f"{_quoted(event.unit)}", done="withdrawn")


def _enrolment(did: str) -> Callable[[Event], str]:
    return lambda event: _by(event.who, did, "enrolment")


def _arm(did: str) -> Callable[[Event], str]:
    return lambda event: _by(event.who, did, f"the arm {_quoted(event.arm)}")


def _arm_added(event: Event) -> str:
    floor = event.details.get("floor")
    return _by(event.who, "added", f"the arm {_quoted(event.arm)}", f" with a floor of {floor:g}" if floor else "")


def _weight(event: Event) -> str:
    found = event.details
    return _by(event.who, "set", "the weight", f" to {found['reward_weight']:g} (was {found['was']:g})")


def _dial(event: Event) -> str:
    found = event.details
    goal = found.get("goal")
    aim = f", for a half-width of {goal['half_width']:g} after {goal['units']:,} units" if goal else ""
    return _by(event.who, "set", "the dial", f" to {dial_words(found['dial'])}{aim} (was {dial_words(found['was'])})")


def _described(event: Event) -> str:
    new, old = _texts(event.details["description"]), _texts(event.details["was"])
    changed = [f"{what} to {_quoted(text)}" if text else f"{what} to nothing" for what, text in new.items()]
    [first, *others] = changed or ["nothing"]
    if len(new) > 1:
        return _by(
            event.who,
            "changed",
            " and ".join(filter(None, (", ".join([first, *others[:-1]]), others[-1]))),
            several=True,
        )
    was = next(iter(old.values()), "")
    return _by(
        event.who,
        "changed",
        first.partition(" to ")[0],
        f" to {first.partition(' to ')[2]}" + (f" (was {_quoted(was)})" if was else ""),
    )


def _texts(description: dict[str, Any]) -> dict[str, str]:
    """Return each text of a description by what it is about, in words."""
    plain = {f"the {name.replace('_', ' ')}": text for name, text in description.items() if name != "arms"}
    return plain | {f"the text of the arm {_quoted(arm)}": text for arm, text in description.get("arms", {}).items()}


def _note(event: Event) -> str:
    """Return a note or a decision; line breaks become blanks."""
    text = _quoted(" ".join(str(event.details.get("text", "")).split()))
    decided = event.details.get("kind") == "decision"
    if event.who is None:
        return f"{'Decision' if decided else 'Note'}: {text}"
    return f"{event.who} {'decided' if decided else 'noted'}: {text}"


def _alerts(event: Event) -> str:
    of_arm = "" if event.arm is None else f" of the arm {_quoted(event.arm)}"
    return f"alerts about {_quoted(event.details.get('check'))}{of_arm}"


def _muted(event: Event) -> str:
    until = datetime.fromisoformat(event.details["until"])
    return _by(event.who, "muted", _alerts(event), f" until {until:%Y-%m-%d %H:%M} UTC", several=True)


def _unknown(event: Event) -> str:
    about = "" if event.unit is None else f", about {_quoted(event.unit)}"
    return f"{event.kind.replace('_', ' ')}{about}"


_WORDS: dict[str, Callable[[Event], str]] = {
    "created": _created,
    "assigned": _assigned,
    "rewarded": _rewarded,
    "counted": _settled,
    "expired": _expired,
    "corrected": _corrected,
    "withdrawn": _withdrawn,
    "paused": _enrolment("paused"),
    "resumed": _enrolment("resumed"),
    "stopped": _enrolment("stopped"),
    "finished": lambda event: _by(event.who, "finished", "the experiment"),
    "arm_added": _arm_added,
    "arm_paused": _arm("paused"),
    "arm_resumed": _arm("resumed"),
    "arm_retired": _arm("retired"),
    "weight_changed": _weight,
    "dial_changed": _dial,
    "described": _described,
    "muted": _muted,
    "unmuted": lambda event: _by(event.who, "unmuted", _alerts(event), several=True),
    "rebuilt": lambda event: _by(event.who, "rebuilt", "the tables", " from the log", several=True),
}
"""The sentence of each kind of event."""
