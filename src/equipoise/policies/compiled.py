"""Connect policies to the kernels: policies described by a rule, and policies given as a numba-compiled function."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.errors import InvalidInput
from equipoise.kernels.rules import FLOOR
from equipoise.policies.policy import Choice, Chooser, Policy, inherits
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from equipoise.kernels.rules import Rule

Chances = Callable[[ArmStats], FloatArray]
Decider = Callable[[ArmStats, FloatArray], tuple[int, bool, float]]

_DECIDING_METHODS = ("prepare", "choose", "probabilities", "target", "_decider")
"""Methods that the kernels replace; a subclass that overrides one must be called instead."""


class CompiledPolicy(Policy):
    """A policy that the kernels know by its rule."""

    @abstractmethod
    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled loops decide as this policy does; not if part of it is overridden in Python."""
        return self._solver() is None and inherits(self, CompiledPolicy, _DECIDING_METHODS)

    def per_arm(self, n_arms: int) -> FloatArray:
        """Return the policy's numbers per arm: floor, importance and allocation."""
        floor = checks.floors(getattr(self, "floor", 0.0), n_arms)
        return np.array([floor, np.full(n_arms, 1.0 / n_arms), np.zeros(n_arms)])

    def to_dict(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data; a floor's decay if there is one.

        Logs written before floors could decay must read the same.
        """
        return {name: value for name, value in super().to_dict().items() if name != "floor_decay" or value != 0.0}

    def floors_at(self, step: int, n_arms: int) -> FloatArray:
        """Return the floor of each arm at a step, counted from 1."""
        stated = self.per_arm(n_arms)
        if self.rule().floor_decay > 0:
            from equipoise.kernels.decision import decay_floors

            decay_floors(self.rule().floor_decay, step, stated.copy(), stated)
        return np.asarray(stated[FLOOR])

    def check_arms(self, n_arms: int) -> None:
        """Raise if the parameters do not fit this number of arms."""
        self.per_arm(n_arms)

    def prepare(self, n_arms: int) -> Chooser:
        """Return a chooser with its scratch space allocated; `choose` itself if a subclass overrides it."""
        self.check_arms(n_arms)
        if type(self).choose is not CompiledPolicy.choose:
            return self.choose
        return self._chooser(n_arms)

    def choose(self, stats: ArmStats, uniform: float) -> Choice:
        """Return the choice for these statistics; `uniform` is a random number in [0, 1)."""
        # A subclass may call this from its own `choose`; going through `prepare` would call that again.
        prepare = self.prepare if type(self).choose is CompiledPolicy.choose else self._chooser
        return prepare(stats.n_arms)(stats, uniform)

    def probabilities(self, stats: ArmStats) -> FloatArray:
        """Return the probability of each arm to be the next choice."""
        return self._chances(stats.n_arms)(stats)

    def target(self, stats: ArmStats) -> FloatArray | None:
        """Return the allocation the policy steers towards, or None if it has none (yet)."""
        from equipoise.kernels.decision import WORK_ROWS, write_target

        rule, solve, n_arms = self.rule(), self._solver(), stats.n_arms
        if stats.pulls.min() < rule.rewards_needed:
            return None
        if solve is not None:
            return solve(stats)
        work, target = np.empty((WORK_ROWS, n_arms)), np.empty(n_arms)
        state = (stats.n_assigned + 1, *self._estimates(stats))
        has_target, _ = write_target(rule, self.per_arm(n_arms), *state, work, target)
        return target if has_target else None

    def _solver(self) -> Chances | None:
        """Return the function that computes the target in Python, or None if the kernel does."""
        return None

    def _estimates(self, stats: ArmStats) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the numbers of rewards, means and stds that choices read."""
        return stats.pulls, stats.mean, stats.std

    def _decider(self, n_arms: int, tracked_from: IntArray | None = None) -> Decider:
        """Return a function that returns the next arm, or fills the probabilities and returns `RANDOM`.

        With `tracked_from`, tracking counts only the assignments of each arm beyond these.
        """
        from equipoise.kernels.decision import WORK_ROWS, decide, forced_arm, track, window_at

        rule, per_arm, solve = self.rule(), self.per_arm(n_arms), self._solver()
        work = np.empty((WORK_ROWS, n_arms))

        def decider(stats: ArmStats, probability: FloatArray) -> tuple[int, bool, float]:
            tracked_t = t = stats.n_assigned + 1
            tracked = assigned = stats.assigned
            pulls, mean, std = self._estimates(stats)
            if tracked_from is not None:
                tracked = assigned - tracked_from
                tracked_t = int(tracked.sum()) + 1
            if solve is None:
                return decide(rule, per_arm, t, assigned, pulls, mean, std, tracked_t, tracked, work, probability)
            # A target computed in Python is forced and tracked like any other; see `kernels.decision.decide`.
            arm = forced_arm(rule, t, assigned, pulls)
            if arm >= 0:
                return arm, True, math.nan
            window = window_at(rule, tracked_t)
            arm = track(rule.tracking, window, rule.mixing, tracked_t, solve(stats), tracked, probability)
            return arm, False, math.nan

        return decider

    def _chooser(self, n_arms: int, tracked_from: IntArray | None = None) -> Chooser:
        """Return a chooser that uses the kernel, or the probabilities of a subclass that overrides them."""
        if type(self).probabilities is not CompiledPolicy.probabilities:
            return super().choose
        from equipoise.kernels.decision import RANDOM, draw

        probability, decider = np.zeros(n_arms), self._decider(n_arms, tracked_from)

        def chooser(stats: ArmStats, uniform: float) -> Choice:
            arm, forced, _ = decider(stats, probability)
            if arm != RANDOM:
                return Choice(arm, 1.0, forced)
            arm = draw(probability, uniform)
            return Choice(arm, float(probability[arm]), forced)

        return chooser

    def _chances(self, n_arms: int, tracked_from: IntArray | None = None) -> Chances:
        """Return a function that computes the probability of each arm to be chosen by `_chooser`."""
        from equipoise.kernels.decision import RANDOM

        decider = self._decider(n_arms, tracked_from)

        def chances(stats: ArmStats) -> FloatArray:
            probability = np.zeros(n_arms)
            arm, _, _ = decider(stats, probability)
            if arm != RANDOM:
                probability[:] = 0.0
                probability[arm] = 1.0
            return probability

        return chances

    def _check(self, *names: str) -> None:
        """Check the parameters that several policies share, and store them in their normal form."""
        self._set(**{name: _CHECKS[name](name, getattr(self, name)) for name in names})


def choosing_since(policy: Policy, tracked_from: IntArray) -> tuple[Chooser, Chances]:
    """Return `choose` and `probabilities` of a policy that tracks its target over the assignments since some moment.

    `tracked_from` is how often each arm had been assigned then. A policy with its own `choose` is called unchanged:
    only its author knows which assignments it should count.
    """
    n_arms = tracked_from.size
    if isinstance(policy, CompiledPolicy) and inherits(policy, CompiledPolicy, _DECIDING_METHODS):
        return policy._chooser(n_arms, tracked_from), policy._chances(n_arms, tracked_from)
    return policy.prepare(n_arms), policy.probabilities


def recorded_policy(data: dict[str, Any]) -> Policy:
    """Read a policy from a log or a saved bandit; one recorded before windows could grow keeps its constant window.

    Examples
    --------
    >>> recorded_policy({"name": "ForcingBalance", "reward_weight": 0.5, "tracking": "windowed"})
    ForcingBalance(reward_weight=0.5, tracking='windowed', window_growth=0.0)
    """
    policy = Policy.from_dict(data)
    known: Any = policy
    if "window_growth" in data or getattr(known, "window_growth", 0.0) == 0.0 or known.tracking != "windowed":
        return policy
    return cast("Policy", dataclasses.replace(known, window_growth=0.0))


def _floor(name: str, floor: float | Sequence[float]) -> float | tuple[float, ...]:
    if np.ndim(floor) == 0:
        return checks.number_between(name, floor, 0, 1)
    shares = checks.non_negative(name, floor)
    return tuple(checks.floors(shares, shares.size).tolist())


def _decay(name: str, value: Any) -> float:
    decay = checks.number_between(name, value, 0, 1)
    if decay == 1.0:
        raise InvalidInput.of(name, "must be below 1", value)
    return decay


def _number(low: float, high: float, *, open_low: bool = False) -> Callable[[str, Any], float]:
    return lambda name, value: checks.number_between(name, value, low, high, open_low=open_low)


_TARGET_TRACKINGS = ("difference", "ratio", "sample", "windowed")
"""Ways to turn a target into a pull; `PooledBalance`, which needs no target, has its own."""

_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "draws": lambda name, value: checks.whole_number(name, value, 1, 1_000_000),
    "failure_probability": _number(0, 1, open_low=True),
    "floor": _floor,
    "floor_decay": _decay,
    "forcing": _number(0, math.inf),
    "mixing": _number(0, 1),
    "reward_weight": _number(0, 1),
    "scale": _number(0, checks.LARGEST_REWARD),
    "smallest_std": _number(0, checks.LARGEST_REWARD),
    "tracking": lambda name, value: checks.one_of(name, value, _TARGET_TRACKINGS),
    "window": _number(1, math.inf),
    "window_growth": _number(0, 1),
}


SIGNATURE = "fill(parameters, t, assigned, pulls, mean, std, probability)"
"""Arguments of the function of a `NumbaPolicy`."""


class NumbaPolicy(Policy):
    """A policy defined by a function that numba compiled.

    The function fills the probability of each arm to be next. It is called as
    ``fill(parameters, t, assigned, pulls, mean, std, probability)``, where the parameters are the policy's fields in
    order, as floats, `t` counts steps from 1, and `probability` holds zeros. It must not write to the other arrays;
    `mean` is NaN before an arm's first reward, `std` before its second.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numba, numpy as np, equipoise as eq
    >>> @numba.njit
    ... def fill(parameters, t, assigned, pulls, mean, std, probability):
    ...     (patience,) = parameters
    ...     for i in range(probability.size):
    ...         probability[i] = 1.0 / (patience + assigned[i])
    ...     probability /= probability.sum()
    >>> @dataclass(frozen=True, kw_only=True, repr=False)
    ... class LeastKnownCompiled(eq.NumbaPolicy):
    ...     patience: float = 1.0
    ...     def filler(self):
    ...         return fill
    >>> eq.Bandit(LeastKnownCompiled(patience=3), n_arms=2, seed=1).ask(6)
    [0, 0, 1, 1, 1, 0]
    """

    @abstractmethod
    def filler(self) -> Callable[..., None]:
        """Return the compiled function that fills the probabilities."""

    def parameters(self) -> tuple[Any, ...]:
        """Return the function's parameters; a subclass may return any types that numba supports."""
        values = []
        for field in self._fields():
            value = getattr(self, field.name)
            try:
                values.append(float(value))
            except (TypeError, ValueError):
                raise InvalidInput(
                    f"{field.name} of {type(self).__name__} must be a number; got {value!r}",
                    hint="define its method `parameters` to hand other things to the function",
                ) from None
        return tuple(values)

    def probabilities(self, stats: ArmStats) -> FloatArray:
        """Return the probability of each arm to be the next choice."""
        probability = np.zeros(stats.n_arms)
        state = (stats.assigned, stats.pulls, stats.mean, stats.std)
        try:
            self.filler()(self.parameters(), stats.n_assigned + 1, *state, probability)
        except Exception as error:
            explain(self, error)
            raise
        return probability


def checked_filler(policy: NumbaPolicy) -> Callable[..., None]:
    """Return the compiled function; raise if its arguments are not the expected ones."""
    filler = policy.filler()
    try:
        signature = inspect.signature(getattr(filler, "py_func", filler))
    except (TypeError, ValueError):  # not a Python function, so its signature is unknown
        return filler
    try:
        signature.bind(*range(SIGNATURE.count(",") + 1))
    except TypeError:
        raise InvalidInput(
            f"filler of {type(policy).__name__} must return a function {SIGNATURE}; "
            f"got {getattr(filler, '__name__', 'one')}{signature}"
        ) from None
    return filler


def explain(policy: NumbaPolicy, error: Exception) -> None:
    """Raise a short error instead of numba's, if this is one: numba prints a screenful with one useful line."""
    by_numba = type(error).__module__.startswith("numba.")
    if by_numba or isinstance(error, TypeError):
        checked_filler(policy)
    if not by_numba:
        return
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # numba writes in colours
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next((line for line in lines if not line.startswith("Failed in ")), type(error).__name__)
    place = next((f" ({line.rstrip(':')})" for line in lines if line.startswith("File ")), "")
    raise InvalidInput(
        f"the function of {policy!r} must be one that numba can compile; got: {said}{place}",
        hint=f"it is called as {SIGNATURE}, where parameters is {policy.parameters()!r}",
    ) from None
