"""Fill the steps of a new experiment from a plan and the way of it that was chosen; the experiment keeps the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from equipoise.console.drafts import AS_PLANNED
from equipoise.console.plan_fields import guess_line, repr_of, rule_fields
from equipoise.errors import InvalidInput, UnknownPlan
from equipoise.experiment.fidelity import PLAN
from equipoise.planner.plan import Plan
from equipoise.planner.planned_ways import Way

if TYPE_CHECKING:
    from equipoise.console.visits import Plans

_MOST_GUESSED_ARMS = 20


@dataclass(frozen=True)
class PlanChoice:
    """A plan, the way of it that an experiment is made with, and the bands that it is compared with later."""

    id: str
    plan: Plan
    way: Way
    bands: Mapping[str, Any]

    @cached_property
    def fields(self) -> dict[str, str]:
        """The steps, filled in."""
        return {name: text for name, text in self._texts() if text}

    def _texts(self) -> Iterator[tuple[str, str]]:
        plan = self.plan
        yield "plan", self.id
        yield "way", self.way.label
        yield "title", plan.title or ""
        yield "outcome", plan.outcome or ""
        yield "arms", "\n".join(plan.arm_names)
        yield "control", plan.control or ""
        yield "control_share", repr_of(self.way.control_share) if self.way.control_share else ""
        low, high = plan.reward_range or (None, None)
        yield "rewards", "yesno" if plan.is_yes_no else "open" if low is None or high is None else "range"
        if not plan.is_yes_no:
            yield "low", "" if low is None else repr_of(low)
            yield "high", "" if high is None else repr_of(high)
        yield "good", "small" if plan.rewards.direction == "minimise" else "large"
        yield from rule_fields(plan.rewards.rule)
        yield "kept", AS_PLANNED
        if len(plan.arms) <= _MOST_GUESSED_ARMS:
            yield "guesses", "\n".join(guess_line(plan, arm) for arm in plan.arms)
        yield "people", str(plan.people.most or round(plan.expected_people))
        yield "budget", "" if plan.people.most is None else str(plan.people.most)
        yield "deadline", "" if plan.deadline is None else plan.deadline.isoformat()
        yield "half_width", "" if plan.goals.precision is None else repr_of(plan.goals.precision)
        yield "decided", "" if plan.goals.margin is None else "yes"
        yield "margin", repr_of(plan.goals.margin) if plan.goals.margin else ""

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Experiment.create`, which keep what was planned."""
        return self.plan.settings(self.way) | {"metadata": {PLAN: dict(self.bands)}}

    @property
    def dial(self) -> dict[str, Any]:
        """The dial of the way, or its policy, as arguments of `Experiment.create`."""
        return {"policy": self.way.policy}

    @property
    def words(self) -> str:
        """The way, in words."""
        words = [self.way.label]
        if self.way.floor:
            words.append(
                f"at least {self.way.floor:.0%} for every arm" if isinstance(self.way.floor, float) else "floors"
            )
        if self.way.warm_up:
            words.append(f"{self.way.warm_up:,} people for every arm first")
        return ", ".join(words)


def choice_of(plans: Plans, form: Mapping[str, str]) -> PlanChoice:
    """Return the plan and the way that a form names."""
    identity, label = form["plan"], form.get("way", "")
    found = plans.find(identity)
    if found is None:
        raise UnknownPlan(
            "the plan that this began with is not kept any more",
            hint="plans are kept for a while only: simulate it again",
        )
    bands = plans.bands(identity)
    if label not in bands:
        raise InvalidInput(
            f"the plan has no simulated way {label!r}; it has {', '.join(map(repr, bands)) or 'none yet'}"
        )
    plan = Plan.from_dict(found["plan"])
    return PlanChoice(identity, plan, plan.way(label), bands[label])
