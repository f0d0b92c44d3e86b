"""Hold a new experiment while it is described in steps: read what was written, and say it in words, TOML and code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from equipoise.console.acts import quoted
from equipoise.console.form_values import lines_in, number_in, optional_count, optional_number, optional_text, text_in
from equipoise.console.help_page import counted
from equipoise.errors import InvalidInput
from equipoise.experiment import Budget, Deadline, Decided, Precision, StoppingRule
from equipoise.experiment.configuration import checked_settings
from equipoise.experiment.description import TEXTS, checked_description
from equipoise.experiment.missing_rewards import missing_rule
from equipoise.experiment.names import checked_new_name
from equipoise.planner import Plan, Way
from equipoise.planner.plan_file import toml_key, toml_value
from equipoise.quantities import duration_seconds, duration_text

if TYPE_CHECKING:
    from equipoise.console.plan_choice import PlanChoice
    from equipoise.planner.forecast import Forecast

KEPT = ("1", "0.9", "0.7", "0.5", "0.25")
"""The positions of the dial that are offered: the share of the information that is kept."""
AS_PLANNED = "planned"
"""The position of the dial that a plan says."""
ABOUT = {"every-arm": "every arm", "average": "the arms on average", "best-arm": "which arm is best"}
MOST_ARMS, MOST_GUESSED_ARMS = 1_000, 20
MOST_GUESSED = 1_000_000


@dataclass(frozen=True)
class Draft:
    """What is written so far about a new experiment; its parts raise `InvalidInput` where that makes no sense."""

    form: Mapping[str, str]
    choice: PlanChoice | None = None
    """The plan that it is made from."""

    # What it is about

    @cached_property
    def name(self) -> str:
        """Its name."""
        return checked_new_name("the name", text_in(self.form, "name"))

    @cached_property
    def arms(self) -> list[str]:
        """The names of the arms."""
        found = lines_in(self.form, "arms")
        if len(found) < 2:
            raise InvalidInput(f"an experiment compares at least two arms, one on each line; got {len(found)}")
        if len(found) > MOST_ARMS:
            raise InvalidInput(f"at most {MOST_ARMS:,} arms can be written here; equipoise create has no such limit")
        for arm in found:
            checked_new_name("an arm", arm)
        if len(set(found)) < len(found):
            twice = next(arm for arm in found if found.count(arm) > 1)
            raise InvalidInput(f"arms must have different names; {quoted(twice)} is there twice")
        return found

    @cached_property
    def control(self) -> tuple[str | None, float]:
        """The control, if there is one, and the share kept for it."""
        control = optional_text(self.form, "control")
        share = optional_number(self.form, "control_share", "the share of the control")
        if control is None:
            if share:
                raise InvalidInput("say which arm the control is, or leave its share empty")
            return None, 0.0
        if control not in self.arms:
            raise InvalidInput(f"the control must be one of the arms; got {quoted(control)}")
        return control, share or 0.0

    @cached_property
    def description(self) -> dict[str, Any]:
        """What it is about, as far as that is written."""
        found: dict[str, Any] = {name: optional_text(self.form, name) for name in TEXTS}
        lines = [line.strip() for line in self.form.get("arm_texts", "").rstrip().splitlines()]
        if len(lines) > len(self.arms):
            raise InvalidInput(f"describe the {len(self.arms):,} arms with a line each; got {len(lines):,} lines")
        found["arms"] = {arm: line for arm, line in zip(self.arms, lines, strict=False) if line}
        return checked_description("description", found).to_dict()

    # Rewards

    @cached_property
    def reward_range(self) -> tuple[float | None, float | None] | None:
        """Lowest and highest reward."""
        kind = self.form.get("rewards", "yesno")
        if kind == "yesno":
            return 0.0, 1.0
        if kind == "open":
            return None
        if kind != "range":
            raise InvalidInput(f"rewards must be yes or no, in a range, or open; got {kind!r}")
        low = number_in(self.form, "low", "the lowest reward")
        high = number_in(self.form, "high", "the highest reward")
        if low >= high:
            raise InvalidInput(f"the lowest reward must be below the highest; got {low:g} and {high:g}")
        return low, high

    @property
    def is_yes_no(self) -> bool:
        """Whether rewards are yes or no."""
        return self.form.get("rewards", "yesno") == "yesno"

    @property
    def direction(self) -> str:
        """Whether large or small rewards are good."""
        return "minimise" if self.form.get("good") == "small" else "maximise"

    @cached_property
    def missing(self) -> dict[str, Any]:
        """What happens without a reward, as a table of a file."""
        window, silence = optional_text(self.form, "window"), self.form.get("silence", "wait")
        if silence not in ("wait", "default", "drop"):
            raise InvalidInput(f"silence must be one of wait, default and drop; got {silence!r}")
        if window is None:
            if silence != "wait":
                raise InvalidInput("say how long a reward is waited for, such as 2 days, or wait without limit")
            return {"rule": "wait"}
        found: dict[str, Any] = {"rule": silence, "window": duration_text(duration_seconds(window, "the time to wait"))}
        if silence == "default":
            found["value"] = number_in(self.form, "default_value", "the value that counts instead")
        if self.form.get("hold"):
            found["hold"] = True
        return found

    # Dial

    @cached_property
    def dial(self) -> dict[str, Any]:
        """How the dial is set."""
        if self._is_as_planned and self.choice is not None:
            return self.choice.dial
        kept = self.form.get("kept", "0.7")
        value = (
            number_in(self.form, "kept_own", "the share of the information")
            if kept == "own"
            else number_in({"kept": kept}, "kept", "the share of the information")
        )
        if not 0 < value <= 1:
            raise InvalidInput(f"the share of the information must be above 0 and at most 1; got {value:g}")
        return {"information_kept": value, "information_about": self.about}

    @property
    def _is_as_planned(self) -> bool:
        """Whether the dial is that of the plan."""
        return self.choice is not None and self.form.get("kept", AS_PLANNED) == AS_PLANNED

    @property
    def about(self) -> str:
        """What the information is about."""
        about = self.form.get("about", "every-arm")
        if about not in ABOUT:
            raise InvalidInput(f"what the information is about must be one of {', '.join(ABOUT)}; got {about!r}")
        return about

    @cached_property
    def guesses(self) -> Plan | None:
        """A plan with what is guessed of the arms, if anything is."""
        lines = lines_in(self.form, "guesses")
        people = optional_count(self.form, "people", "the number of people")
        if not lines:
            return None
        if len(lines) != len(self.arms):
            raise InvalidInput(f"write one guess for each of the {len(self.arms):,} arms, or none; got {len(lines):,}")
        if len(self.arms) > MOST_GUESSED_ARMS:
            raise InvalidInput(f"prices are shown for at most {MOST_GUESSED_ARMS} arms: leave the guesses empty")
        if people is not None and not 1 <= people <= MOST_GUESSED:
            raise InvalidInput(f"the number of people must be from 1 to {MOST_GUESSED:,}; got {people:,}")
        arms = {arm: self._guess(line) for arm, line in zip(self.arms, lines, strict=True)}
        control, _ = self.control
        about = self.about
        rewards: dict[str, Any] = {"direction": self.direction}
        if not self.is_yes_no and self.reward_range is not None:
            rewards["range"] = list(self.reward_range)
        goal = None
        with suppress(InvalidInput):  # its own step says what is wrong with it
            goal = next((rule.half_width for rule in self.rules if isinstance(rule, Precision)), None)
        return Plan(
            arms=arms,
            people=people or 1_000,
            control=control,
            rewards=rewards,
            goals=goal,
            ways=[Way.keeping(kept, information_about=about, label=way_label(kept)) for kept in map(float, KEPT)],
        )

    def _guess(self, line: str) -> Any:
        if self.is_yes_no:
            return line
        parts = line.replace("\N{PLUS-MINUS SIGN}", " ").replace("+-", " ").replace("+/-", " ").split()
        if len(parts) != 2:
            raise InvalidInput(f"write a guess as mean and spread, such as 12 \N{PLUS-MINUS SIGN} 4; got {line!r}")
        mean, std = (number_in({"guess": part}, "guess", "a guess") for part in parts)
        return {"mean": mean, "std": std}

    @cached_property
    def forecast(self) -> Forecast | None:
        """What is to be expected of the guesses, by formula."""
        return None if self.guesses is None else self.guesses.formulas()

    # Stopping

    @cached_property
    def stopping(self) -> dict[str, Any]:
        """The stopping rules, as a table of a file."""
        found: dict[str, Any] = {}
        budget = optional_count(self.form, "budget", "the number of people")
        if budget is not None:
            found["budget"] = budget
        deadline = optional_text(self.form, "deadline")
        if deadline is not None:
            found["deadline"] = _instant(deadline)
        precision = optional_number(self.form, "half_width", "the precision")
        if precision is not None:
            found["precision"] = precision
        if self.form.get("decided"):
            found["decided"] = optional_number(self.form, "margin", "what choosing may cost") or 0.0
        return found

    @property
    def rules(self) -> list[StoppingRule]:
        """The stopping rules."""
        makers: dict[str, Any] = {
            "budget": lambda value: Budget(units=value),
            "deadline": lambda value: Deadline(at=value),
            "precision": lambda value: Precision(half_width=value),
            "decided": lambda value: Decided(margin=value),
        }
        return [makers[name](value) for name, value in self.stopping.items()]

    # Everything

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Experiment.create` besides the name; checked.

        Made from a plan, what was not changed in the steps is as the plan says, also what the steps do not ask for.
        """
        found = self._written
        if self.choice is not None:
            before = Draft(self.choice.fields, self.choice)._written
            changed = {name: value for name, value in found.items() if value != before.get(name)}
            planned = self.choice.settings
            if not self._is_as_planned:
                del planned["policy"]
            found = planned | changed | {"description": self.description}
        checked_settings(**_defaults() | found)
        return found

    @property
    def _written(self) -> dict[str, Any]:
        control, share = self.control
        return {
            "arms": self.arms,
            **self.dial,
            "control": control,
            "control_share": share,
            "reward_range": self.reward_range,
            "direction": self.direction,
            "missing": missing_rule(self.missing),
            "stopping": self.rules,
            "description": self.description,
        }

    @property
    def file(self) -> dict[str, Any]:
        """The experiment as a file of `equipoise create --file` has it."""
        control, share = self.control
        found: dict[str, Any] = {"name": self.name, "arms": self.arms, **self.dial}
        if control is not None:
            found["control"] = control
            if share:
                found["control_share"] = share
        if self.reward_range is not None:
            found["reward_range"] = list(self.reward_range)
        if self.direction != "maximise":
            found["direction"] = self.direction
        tables = {"missing": self.missing, "stopping": self.stopping, "description": self.description}
        return found | {name: table for name, table in tables.items() if table and table != {"rule": "wait"}}

    @property
    def toml(self) -> str:
        """The file."""
        plain = [f"{key} = {toml_value(value)}" for key, value in self.file.items() if not isinstance(value, dict)]
        for key, value in self.file.items():
            if isinstance(value, dict):
                plain += ["", f"[{key}]", *(f"{toml_key(name)} = {toml_value(one)}" for name, one in value.items())]
        return "\n".join(plain) + "\n"

    @property
    def body(self) -> dict[str, Any]:
        """The experiment as the body of a request has it."""
        found = {name: value for name, value in self.file.items() if name not in ("missing", "stopping")}
        if self.missing != {"rule": "wait"}:
            found["missing"] = missing_rule(self.missing).to_dict()
        if self.rules:
            found["stopping"] = [rule.to_dict() for rule in self.rules]
        return found

    def curl(self, address: str) -> str:
        """Return the request that makes it."""
        text = json.dumps(self.body, indent=2, ensure_ascii=False).replace("'", "'\\''")
        return (
            f"curl {address}/experiments \\\n  --header \"Authorization: Bearer $EQUIPOISE_KEY\" \\\n  --json '{text}'"
        )

    def python(self, address: str) -> str:
        """Return the call that makes it."""
        given = [
            f"    {name}={value!r}," for name, value in self.file.items() if name not in ("name", "missing", "stopping")
        ]
        if self.missing != {"rule": "wait"}:
            given.append(f"    missing=eq.{missing_rule(self.missing)!r},")
        if self.rules:
            given.append(f"    stopping=[{', '.join(f'eq.{rule!r}' for rule in self.rules)}],")
        lines = [
            "import equipoise as eq",
            "",
            f"client = eq.Client({address!r}, key)",
            "experiment = client.create(",
            f"    {self.name!r},",
            *given,
            ")",
        ]
        return "\n".join(lines)

    # In words

    @property
    def rewards_words(self) -> str:
        """What rewards are and what silence means, in a sentence or two."""
        good = "Small rewards are good" if self.direction == "minimise" else "Large rewards are good"
        low, high = self.reward_range or (None, None)
        kinds = "yes or no" if self.is_yes_no else "any number" if low is None else f"between {low:g} and {high:g}"
        return f"Rewards are {kinds}. {good}. {self.silence_words}"

    @property
    def silence_words(self) -> str:
        """What happens to those without a reward."""
        window = self.missing.get("window")
        if window is None:
            return "A reward is waited for without limit."
        what = {
            "wait": "is shown as overdue, and their reward counts whenever it comes",
            "default": f"counts with {self.missing.get('value', 0):g} until a reward comes",
            "drop": "is left out",
        }[self.missing["rule"]]
        held = " No reward counts before that time, so that arms are not judged by their quick answers."
        return f"Who has not answered after {window} {what}.{held if self.missing.get('hold') else ''}"

    @property
    def dial_words(self) -> str:
        """The dial in a sentence."""
        if self._is_as_planned and self.choice is not None:
            return f"The dial is as planned: {self.choice.words}."
        kept, about = self.dial["information_kept"], ABOUT[self.dial["information_about"]]
        if kept == 1:
            return f"All people serve to learn about {about}."
        return (
            f"It takes {1 / kept:.3g} times as many people to learn as much about {about}; "
            "in exchange, more people get what works."
        )

    @property
    def stopping_words(self) -> str:
        """The stopping rules in a sentence."""
        found = {
            "budget": lambda value: f"{counted(value, 'person', 'people')} are assigned",
            "deadline": lambda value: f"it is {value:%d %B %Y %H:%M} UTC",
            "precision": lambda value: f"every arm is known to within {value:g}",
            "decided": lambda value: (
                "it is clear which arm is best" + (f", or choosing costs at most {value:g}" if value else "")
            ),
        }
        rules = [found[name](value) for name, value in self.stopping.items()]
        return f"It is time to stop when {', or when '.join(rules)}." if rules else "No rule says when to stop."

    @property
    def sentence(self) -> str:
        """The experiment in a sentence."""
        arms = ", ".join(map(quoted, self.arms[:5])) + (
            f" and {len(self.arms) - 5:,} more" if len(self.arms) > 5 else ""
        )
        control, share = self.control
        kept = (
            "" if control is None else f", with {quoted(control)} as control" + (f" for {share:.0%}" if share else "")
        )
        return f"{quoted(self.name)} compares {arms}{kept}."

    @property
    def warnings(self) -> list[str]:
        """What one may regret."""
        found = []
        control, share = self.control
        if self.reward_range is None:
            found.append(
                "No range of rewards is declared: intervals wait for 30 rewards of each arm or more, and a wrong "
                "number cannot be refused."
            )
        if control is not None and not share:
            found.append(
                f"Nothing is kept for the control: if {quoted(control)} does badly, few people will get it, and "
                "differences from it will be known poorly. Keep 10% or more."
            )
        if self.missing.get("window") and not self.missing.get("hold"):
            found.append(
                "Rewards count as they come. If good ones come faster than bad ones, or faster in some arms, hold them "
                "until the time to wait has passed."
            )
        if not self.missing.get("window"):
            found.append("No time to wait is declared: nobody is ever overdue, and missing rewards are not noticed.")
        if len(self.arms) > 10:
            found.append(
                f"Intervals hold for all {len(self.arms):,} arms together, so they are wider than for a few arms."
            )
        if not self.stopping:
            found.append(
                "No stopping rule is declared: decide beforehand how many people you need, or how much precision."
            )
        return found


def way_label(kept: float) -> str:
    """Return how pages call keeping a share of the information.

    Examples
    --------
    >>> way_label(1.0), way_label(0.7), way_label(0.125)
    ('keep all', 'keep 70%', 'keep 12.5%')
    """
    return "keep all" if kept == 1 else f"keep {100 * kept:.4g}%"


def _instant(text: str) -> datetime:
    """Return an instant as it stands in the field; without a zone it is UTC."""
    from datetime import UTC

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"the deadline must be a day or an instant, such as 2027-06-30; got {text!r}") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _defaults() -> dict[str, Any]:
    from equipoise.experiment import Experiment

    given = Experiment.create.__kwdefaults__ or {}
    return {name: value for name, value in given.items() if name not in ("paused", "who")}
