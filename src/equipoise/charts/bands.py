"""What charts of simulations share: some policies of the runs, their names, and mean and band over replications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import metrics
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise._types import FloatArray
    from equipoise.policies import Policy
    from equipoise.simulation.runs import Runs

QUANTILES = (0.05, 0.95)


@dataclass(frozen=True)
class Band:
    """A quantity over replications: its mean, and a lower and an upper quantile."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def has_width(self) -> bool:
        """Whether there is a band to draw; not so with one replication."""
        return bool((self.high > self.low).any())


def band_of(values: FloatArray, quantiles: Sequence[float]) -> Band:
    """Return mean and quantiles over the second axis; not finite where a replication's value is not."""
    if len(quantiles) != 2 or not quantiles[0] <= quantiles[1]:
        raise InvalidInput(f"quantiles must be a lower and an upper one, such as {QUANTILES}; got {quantiles!r}")
    summary = metrics.summarise(values, quantiles=quantiles)
    return Band(summary.mean, summary.quantiles[0], summary.quantiles[1])


def band_words(count: int, quantiles: tuple[float, float], *, mean: str, band: str, is_drawn: bool) -> str:
    """Return a subtitle that says what is drawn of the replications.

    Examples
    --------
    >>> band_words(200, (0.05, 0.95), mean="line", band="band", is_drawn=True)
    'line: mean of 200 replications; band: from the 5% to the 95% quantile'
    """
    if count == 1:
        return f"{mean}: one replication"
    words = f"{mean}: mean of {count:,} replications"
    return (
        f"{words}; {band}: from the {100 * quantiles[0]:g}% to the {100 * quantiles[1]:g}% quantile"
        if is_drawn
        else words
    )


def chosen(runs: Runs, policies: Sequence[Policy] | None) -> Runs:
    """Return the runs of some policies, in their order; all by default."""
    if policies is None:
        return runs
    if not policies:
        raise InvalidInput(f"policies must be some of {', '.join(runs.labels)}; got none")
    return runs.select(policies=[runs.index_of(policy) for policy in policies])


def policy_names(policies: Sequence[Policy], names: Sequence[str] | None) -> tuple[str, ...]:
    """Return a different name for each policy: those given, or the shortest that tell them apart.

    Examples
    --------
    >>> import equipoise as eq
    >>> policies = [eq.Uniform(), eq.UCB(scale=4), eq.UCB()]
    >>> policy_names(policies, None)
    ('Uniform', 'UCB, scale 4', 'UCB, scale 1')
    """
    given = short_names(policies) if names is None else one_each(policies, names)
    if len(set(given)) < len(given):
        if names is not None:
            raise InvalidInput(f"names must differ from each other; got {list(names)}")
        given = tuple(f"{name}, no. {k + 1}" if given.count(name) > 1 else name for k, name in enumerate(given))
    return given


def one_each(policies: Sequence[Policy], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names if there is one per policy."""
    if isinstance(names, str) or len(names) != len(policies):
        raise InvalidInput(f"names must be {len(policies)}, one per policy; got {names!r}")
    return tuple(names)


def short_names(policies: Sequence[Policy], *, without: str | None = None) -> tuple[str, ...]:
    """Return the names of policies, each with the parameters in which policies of its kind differ.

    Policies that differ in the parameter `without` alone, or in nothing, get the same name.
    """

    def short(policy: Policy) -> str:
        alike = [other for other in policies if type(other) is type(policy)]
        words = [type(policy).__name__]
        for key in policy.to_dict():
            if key in ("name", without):
                continue
            value = getattr(policy, key)
            if any(getattr(other, key) != value for other in alike):
                words.append(f"{key.replace('_', ' ')} {_words(value)}")
        return ", ".join(words)

    return tuple(map(short, policies))


def _words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).replace("_", " ")


def pulls_words(count: int) -> str:
    """Return a number of pulls in words.

    Examples
    --------
    >>> pulls_words(1), pulls_words(2_000)
    ('1 pull', '2,000 pulls')
    """
    return f"{count:,} pull" if count == 1 else f"{count:,} pulls"


def place_of(runs: Runs, step: int | None) -> int:
    """Return the place of a step among the checkpoints; of the last by default."""
    if step is None:
        return int(runs.checkpoints.size) - 1
    places = np.flatnonzero(runs.checkpoints == step)
    if not places.size:
        known = ", ".join(map(str, runs.checkpoints))
        raise InvalidInput(
            f"step must be one of the checkpoints; got {step!r}",
            hint=f"simulate with checkpoints=[...] that hold it; there are {known}",
        )
    return int(places[0])


def finite(value: float, *, above: float = -np.inf) -> float | None:
    """Return a number as charts want it: None, which leaves a gap, if it is not finite or not above a bound."""
    number = float(value)
    return number if np.isfinite(number) and number > above else None
