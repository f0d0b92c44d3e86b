"""Policies of a user's own whose choice is compiled by numba, and so runs at compiled speed in the simulator."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from equipoise.errors import InvalidInput
from equipoise.policies.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import DataclassInstance

    from equipoise.arrays import FloatArray
    from equipoise.stats import ArmStats


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
        for field in dataclasses.fields(cast("DataclassInstance", self)):
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
        self.filler()(self.parameters(), stats.n_assigned + 1, *state, probability)
        return probability
