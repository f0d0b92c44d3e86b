"""Simulate a plan until its forecast is precise enough or time is up, with forecasts to look at meanwhile.

Of the simulated experiments, two in three draw their truth from the guesses: their figures include what one does not
know. In one in three every guess is right: they show luck alone, whose ranges are narrower, so that fewer will do.
Where no guess has a range, all is luck.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.planner.forecast import Forecast, forecast_of
from equipoise.planner.paths import Paths
from equipoise.planner.question import Question
from equipoise.planner.trials import TrialsInterrupted, play
from equipoise.policies import Uniform
from equipoise.progress import Progress, Reporter, StepBar, reporter

if TYPE_CHECKING:
    from equipoise.planner.plan import Plan
    from equipoise.planner.planned_ways import Way

FIRST = 20
"""Replications of the first round; each further one doubles them."""
DEFAULT_SECONDS = 60.0
MOST_REPLICATIONS = 10_240
"""Without a number of replications, there are no more than this: a standard error is then 1 % of a spread."""
LUCK = 0.5
"""Replications with every guess right, relative to those with drawn truths."""
_WORTHWHILE = 0.2
"""A last round that time cuts short must add this part of what there is."""
_FULL_BAR = 1000


def question_of(plan: Plan) -> Question:
    """Return what a plan asks."""
    from equipoise.experiment.inference import tightest_at
    from equipoise.planner.trials import Way as SimulatedWay

    labels = tuple(way.label for way in plan.ways)
    equal = next(k for k, way in enumerate(plan.ways) if way.policy == Uniform())
    deadline = plan.deadline_seconds
    configuration = SimulatedWay.of(plan.settings(plan.ways[equal])).configuration
    costs = plan.costs
    return Question(
        ways=labels,
        settings=tuple(_setting(way) for way in plan.ways),
        equal_shares=equal,
        arms=plan.arm_names,
        control=None if plan.control is None else plan.arm_names.index(plan.control),
        direction=plan.rewards.direction,
        is_yes_no=plan.is_yes_no,
        confidence=1.0 - plan.goals.failure_probability,
        holds=bool(configuration.missing.hold),
        reward_range=configuration.counted_range,
        tightest_at=tightest_at(configuration, len(plan.arms)),
        precision=plan.goals.precision,
        precision_of=plan.goals.precision_of,
        margin=plan.goals.margin,
        deadline_seconds=deadline if np.isfinite(deadline) and plan.people.has_calendar else None,
        sureness=plan.goals.by,
        start=None if plan.people.start is None else plan.people.first_day,
        cost_per_person=costs.per_person or None,
        cost_per_day=costs.per_day or None,
        title=plan.title or "",
        outcome=plan.outcome or "",
        late=_late(plan),
        has_calendar=plan.people.has_calendar,
        most_people=plan.people.most,
    )


def _late(plan: Plan) -> float:
    """Return the share of rewards that come after their window, of the arm with most, at the guesses."""
    window = plan.rewards.rule.window_seconds
    if window is None:
        return 0.0
    world, _ = plan.at_guesses()
    late = [
        1.0 - NormalDist().cdf(math.log(window / median) / spread) if median and spread else float(median > window)
        for median, spread in zip(world.delay.tolist(), world.delay_spread.tolist(), strict=True)
    ]
    return max(late)


def _setting(way: Way) -> dict[str, Any]:
    """Return the dial of a way, if its policy has one that is set, or else its policy."""
    for name in ("information_kept", "reward_weight"):
        value = getattr(way.policy, name, None)
        if value is not None:
            return {name: value}
    return {"policy": way.label}


def simulate(
    plan: Plan,
    *,
    replications: int | None = None,
    seconds: float | None = None,
    progress: Progress | bool | None = None,
    on_partial: Callable[[Forecast], object] | None = None,
    workers: int | None = None,
    backend: str = "threads",
    scheduler: str | None = None,
) -> Forecast:
    """Return the forecast of a plan, from simulated experiments.

    It begins with 20 replications and doubles them until the standard errors are small (3 % of median days, 5 % of the
    largest gain) or time is up. Replication r is the same in every run; how many there are depends on the time.

    Parameters
    ----------
    plan : Plan
    replications : int, optional
        Simulate this number with drawn truths instead, and half as many at the guesses.
    seconds : float, optional
        At most about so long; 60 by default, or without limit if `replications` is given.
    progress : bool or callable, optional
        True shows a bar; a function is called with (done, total).
    on_partial : callable, optional
        Called with a forecast after each round, before the last.
    workers, backend, scheduler
        As in `planner.trials.play`.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C before anything is finished; afterwards, what is done is returned, with `interrupted` set.
    """
    rounds = _Rounds(plan, {"workers": workers, "backend": backend, "scheduler": scheduler})
    most = MOST_REPLICATIONS
    if replications is not None:
        most = checks.whole_number("replications", replications, 1, 10**6)
    limit = DEFAULT_SECONDS if seconds is None and replications is None else seconds
    if limit is not None:
        limit = checks.number_between("seconds", limit, 0, 1e9, open_low=True)
    total = _FULL_BAR if replications is None else most
    report = StepBar(total, noun="experiments") if progress is True else reporter(progress, total)
    began = time.monotonic()
    with report:
        while True:
            goal = min(max(FIRST, 2 * rounds.done), most)
            spent = time.monotonic() - began
            if limit is not None and rounds.done:
                goal = min(goal, rounds.done + int(rounds.done * (limit - spent) / max(spent, 1e-9)))
                if goal - rounds.done < _WORTHWHILE * rounds.done and goal < most:
                    break
            is_over = rounds.play(goal, _shown(report, rounds.done, goal, began, limit, replications))
            if is_over or rounds.done >= most:
                break
            if replications is None or on_partial is not None:
                partial = rounds.forecast(time.monotonic() - began)
                if on_partial is not None:
                    on_partial(partial)
                if replications is None and partial.is_settled():
                    return partial
    return rounds.forecast(time.monotonic() - began)


def _shown(
    report: Reporter, done: int, goal: int, began: float, limit: float | None, replications: int | None
) -> Callable[[float], None]:
    """Return a function that shows the part of a round that is done as part of the whole."""

    def show(part: float) -> None:
        if replications is not None:
            report.show(round(done + (goal - done) * part))
        elif limit is not None:
            report.show(min(round(_FULL_BAR * (time.monotonic() - began) / limit), _FULL_BAR))

    return show


class _Rounds:
    """The replications that are done."""

    def __init__(self, plan: Plan, where: dict[str, Any]) -> None:
        self.plan, self.where = plan, where
        self.question = question_of(plan)
        self.settings = [plan.settings(way) for way in plan.ways]
        self.looks = plan.look_seconds()
        self.has_ranges = any(not guess.is_sure for guess in plan.guesses.values())
        self.paths: Paths | None = None
        self.luck: Paths | None = None
        self.interrupted = False
        goals = plan.goals
        read = [] if goals.margin is None else ["n_may_be_best"]
        read += ["most_lost"] if goals.margin else []
        read += ["widest_difference"] if goals.precision is not None and goals.precision_of == "differences" else []
        self.read = read

    @property
    def done(self) -> int:
        """Replications with drawn truths."""
        return 0 if self.paths is None else self.paths.n_replications

    def play(self, goal: int, show: Callable[[float], None]) -> bool:
        """Play until there are so many; return whether Ctrl-C ended that."""
        drawn = 1.0 / (1.0 + LUCK) if self.has_ranges else 1.0
        try:
            self.paths = self._played(self.paths, goal, True, lambda done, total: show(drawn * done / total))
            if self.has_ranges and not self.interrupted:
                at_guesses = max(round(LUCK * goal), 1)
                self.luck = self._played(
                    self.luck, at_guesses, False, lambda done, total: show(drawn + (1.0 - drawn) * done / total)
                )
        except KeyboardInterrupt:
            self.interrupted = True
        if self.paths is None:
            raise KeyboardInterrupt
        return self.interrupted

    def _played(self, before: Paths | None, goal: int, is_drawn: bool, progress: Progress) -> Paths | None:
        """Return what was there and what was played, as far as Ctrl-C let it; None if that is nothing."""
        first = 0 if before is None else before.n_replications
        if goal <= first and before is not None:
            return before
        made = [self.plan.world(replication if is_drawn else None) for replication in range(first, goal)]
        names = made[0][1] if is_drawn else {}
        drawn = {name: np.array([values[name] for _, values in made]) for name in names}
        new: Paths | None
        try:
            new = play(
                [world for world, _ in made],
                self.settings,
                seed=self.plan.seed,
                first=first,
                look_seconds=self.looks,
                drawn=drawn,
                read=self.read,
                progress=progress,
                **self.where,
            )
        except TrialsInterrupted as interrupt:
            self.interrupted, new = True, interrupt.paths
        if before is None or new is None:
            return new if before is None else before
        return before.joined(new)

    def forecast(self, seconds: float) -> Forecast:
        """Return the forecast of what is done."""
        if self.paths is None:  # play raises before
            raise InvalidInput.of("replications", "must be at least 1", 0)
        return forecast_of(
            self.question, self.paths, self.luck, plan=self.plan, interrupted=self.interrupted, seconds=seconds
        )
