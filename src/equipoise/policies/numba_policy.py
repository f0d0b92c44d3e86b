"""Policies of a user's own whose choice is compiled by numba, and so runs at compiled speed in the simulator."""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InvalidInput
from equipoise.policies.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise._types import FloatArray
    from equipoise.stats import ArmStats


SIGNATURE = "fill(parameters, t, assigned, pulls, mean, std, probability)"
"""How the function of a `NumbaPolicy` is called."""


class NumbaPolicy(Policy):
    """A policy given by a function that numba compiled.

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
        """Return what the function gets as its parameters; a subclass may return other things that numba knows."""
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
    """Return the compiled function, or say that it takes other arguments than it will be given."""
    filler = policy.filler()
    try:
        signature = inspect.signature(getattr(filler, "py_func", filler))
    except (TypeError, ValueError):  # no function of Python's, so there is nothing to say beforehand
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
    """Raise a short error in the place of numba's, if this is one: a screenful of which one line tells something."""
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
