"""Choose arms and learn from rewards in memory, with ask and tell: a policy, statistics of its arms, and a seed."""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload

import numpy as np

from equipoise import checks
from equipoise.checks import checked_reward
from equipoise.errors import InvalidInput, UnexpectedReward, UnknownArm
from equipoise.files import replacing
from equipoise.policies import Choice, Policy
from equipoise.policies.compiled import recorded_policy
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from equipoise.analysis.evidence import RewardRange
    from equipoise.analysis.results import Comparison

FORMAT = "equipoise-bandit/1"

Arm: TypeAlias = int | str
"""An arm by its index, or by its name if the bandit's arms have names."""


class Bandit:
    """Choose arms one by one or in batches, and learn from rewards whenever they arrive.

    Parameters
    ----------
    policy : Policy
        How to choose the next arm.
    n_arms : int, optional
        Number of arms, named 0, 1, 2, ...
    arms : sequence of str, optional
        Names of the arms; pass either these or `n_arms`.
    seed : int, default 0
        The k-th decision uses a random number that depends on the seed and k alone, so the same seed and the same
        rewards lead to the same choices.

    Examples
    --------
    >>> import equipoise as eq
    >>> bandit = eq.Bandit(eq.ForcingBalance(reward_weight=0.8), arms=["number line", "pie"], seed=7)
    >>> for reward in (0.1, 0.9, 0.3, 0.7):
    ...     bandit.tell(bandit.ask(), reward)
    >>> bandit.stats.mean.round(2)
    array([0.2, 0.8])
    >>> bandit.ask(4)
    ['number line', 'pie', 'pie', 'pie']
    """

    def __init__(
        self, policy: Policy, n_arms: int | None = None, *, arms: Sequence[str] | None = None, seed: int = 0
    ) -> None:
        from equipoise.kernels.random import decision_uniform

        if not isinstance(policy, Policy):
            raise InvalidInput(f"policy must be a Policy such as ForcingBalance(reward_weight=0.8); got {policy!r}")
        self.policy = policy
        self.arms = _arm_names(n_arms, arms)
        self.seed = checks.whole_number("seed", seed, 0, 2**63 - 1)
        self.stats = ArmStats(len(self.arms), weighted=policy.weighs_rewards)
        asked = self.arms if policy.weighs_rewards else ()
        self._open: list[deque[tuple[int, float]]] = [deque() for _ in asked]
        """Number and probability of the asks of each arm without a reward, if the policy weighs rewards by these."""
        self.last_choice: Choice | None = None
        self._index = {name: index for index, name in enumerate(self.arms)}
        self._choose = policy.prepare(len(self.arms))
        self._uniform = decision_uniform

    def peek(self) -> Choice:
        """Return the choice that the next `ask` will make, with its probability, without making it."""
        return self._choose(self.stats, self._uniform(self.seed, 0, self.stats.n_assigned))

    @overload
    def ask(self) -> Arm: ...
    @overload
    def ask(self, count: int) -> list[Arm]: ...
    def ask(self, count: int | None = None) -> Arm | list[Arm]:
        """Return the next arm to pull, or the next `count` arms as a list.

        A batch equals that many single asks: each choice sees the earlier ones as pending. `last_choice` holds the
        choice returned last, with its probability.
        """
        if count is None:
            return self._ask()
        return [self._ask() for _ in range(checks.whole_number("count", count, 0))]

    def _ask(self) -> Arm:
        self.last_choice = choice = self.peek()
        if self.policy.weighs_rewards:
            self._open[choice.arm].append((self.stats.n_assigned, choice.probability))
        self.stats.assign(choice.arm)
        return self.arms[choice.arm]

    @overload
    def tell(self, arm: Arm, reward: float) -> None: ...
    @overload
    def tell(self, arm: Sequence[Arm], reward: Sequence[float]) -> None: ...
    def tell(self, arm: Arm | Sequence[Arm], reward: float | Sequence[float]) -> None:
        """Count the reward of an arm asked earlier, or the rewards of several.

        Rewards may arrive late and in any order; it does not matter which of an arm's pending assignments they belong
        to. (A policy for drift, which weights rewards, takes the first asked for the first told.) If any of them is
        invalid, none is counted.
        """
        if isinstance(arm, (int, str, np.integer)):
            pairs = [(self.index(arm), checked_reward(reward))]
            self._require_pending(pairs[0][0], 1)
        else:
            pairs = self._checked_pairs(arm, reward)
            for index, count in Counter(index for index, _ in pairs).items():
                self._require_pending(index, count)
        for index, value in pairs:
            number, probability = self._open[index].popleft() if self.policy.weighs_rewards else (None, None)
            self.stats.update(index, value, probability=probability, number=number)

    def record(self, arm: Arm, reward: float) -> None:
        """Count a pull and its reward that the bandit did not ask for, such as earlier data."""
        index, value = self.index(arm), checked_reward(reward)
        number = self.stats.n_assigned
        self.stats.assign(index)
        self.stats.update(index, value, number=number)

    def correct(self, arm: Arm, old: float, new: float) -> None:
        """Replace a reward counted earlier by another; not with a policy for drift, which weights rewards."""
        if self.policy.weighs_rewards:
            raise InvalidInput(
                f"{self.policy!r} weights each reward by its probability, and a bandit does not know whose {old!r} was",
                hint="an Experiment knows it, and can correct",
            )
        self.stats.replace(self.index(arm), old, new)

    def target(self) -> dict[Arm, float] | None:
        """Return the target share of each arm, or None if the policy has no target (yet)."""
        shares = self.policy.target(self.stats)
        return None if shares is None else dict(zip(self.arms, shares.tolist(), strict=True))

    def index(self, arm: Arm) -> int:
        """Return the index of an arm given by name or index."""
        if isinstance(arm, str) and arm in self._index:
            return self._index[arm]
        if isinstance(arm, (int, np.integer)) and not isinstance(arm, bool) and 0 <= arm < len(self.arms):
            return int(arm)
        known = ", ".join(map(str, self.arms[:12])) + (", ..." if len(self.arms) > 12 else "")
        raise UnknownArm(f"unknown arm {arm!r}; the arms are {known}")

    def compare(
        self,
        *,
        control: str | None = None,
        reward_range: RewardRange = None,
        confidence: float = 0.95,
        guaranteed: bool = False,
    ) -> Comparison:
        """Compare the arms by the rewards so far: which differ, which may be best; valid at all times.

        Parameters
        ----------
        control, confidence, guaranteed
            See `Experiment.compare`.
        reward_range : pair, optional
            The lowest and the highest reward there can be, None for an open end.

        Examples
        --------
        >>> from equipoise.policies import Uniform
        >>> bandit = Bandit(Uniform(), arms=["plain", "prize"])
        >>> for k in range(400):
        ...     arm = bandit.ask()
        ...     bandit.tell(arm, float(k % 10 < (2 if arm == "plain" else 6)))
        >>> print(bandit.compare(reward_range=(0, 1)).sentences[0])
        'prize' is the best arm: better than 'plain', by 0.24 to 0.54.
        """
        from equipoise.analysis.comparisons import compare
        from equipoise.analysis.evidence import Evidence

        evidence = Evidence.of(self.stats, reward_range=reward_range)
        names = [str(arm) for arm in self.arms]
        return compare(evidence, names, control=control, confidence=confidence, guaranteed=guaranteed)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as plain data."""
        data = {
            "format": FORMAT,
            "policy": self.policy.to_dict(),
            "arms": list(self.arms),
            "seed": self.seed,
            "stats": self.stats.to_dict(),
        }
        return data | {"open": [list(map(list, asks)) for asks in self._open]} if self.policy.weighs_rewards else data

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Rebuild a bandit from `to_dict`; its next choices are those the original would make.

        One saved before the windows of `tracking="windowed"` could grow keeps its constant window.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            got = data.get("format") if isinstance(data, dict) else data
            raise InvalidInput(f"expected data in the format {FORMAT}; got {got!r}")
        missing = sorted({"policy", "arms", "seed", "stats"} - set(data))
        if missing:
            raise InvalidInput(f"a saved bandit must have policy, arms, seed and stats; {', '.join(missing)} missing")
        names = data["arms"]
        if not isinstance(names, list) or not names:
            raise InvalidInput(f"arms must be a list with at least one arm; got {names!r}")
        numbered = names == list(range(len(names)))
        bandit = cls(
            recorded_policy(data["policy"]),
            len(names) if numbered else None,
            arms=None if numbered else names,
            seed=data["seed"],
        )
        stats = ArmStats.from_dict(data["stats"])
        if stats.n_arms != len(bandit.arms):
            raise InvalidInput(f"stats must have {len(bandit.arms)} arms; got {stats.n_arms}")
        if (stats.pending < 0).any():
            raise InvalidInput("stats must not have more rewards than assignments of an arm")
        if (stats.drift_sums is not None) != bandit.policy.weighs_rewards:
            expected = f"must be there if, and only if, {bandit.policy!r} reads them"
            raise InvalidInput.of("drift_sums", expected, sorted(data["stats"]))
        bandit.stats = stats
        if bandit.policy.weighs_rewards:
            bandit._open = _open_asks(data.get("open"), stats)
        return bandit

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bandit to a JSON file; an existing file is replaced only once the new one is complete."""
        with replacing(path) as partial:
            partial.write_text(json.dumps(self.to_dict(), allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a bandit that `save` wrote."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise InvalidInput(f"{path} is not a saved bandit; {error}") from error
        return cls.from_dict(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        arms = f"n_arms={len(self.arms)}" if self.arms == tuple(range(len(self.arms))) else f"arms={list(self.arms)}"
        return f"Bandit({self.policy!r}, {arms}, seed={self.seed}; {self.stats.n_assigned} assigned)"

    def _checked_pairs(self, arms: Sequence[Arm], rewards: Any) -> list[tuple[int, float]]:
        try:
            pairs = list(zip(arms, rewards, strict=True))
        except (TypeError, ValueError):
            raise InvalidInput(f"tell needs as many rewards as arms; got {arms!r} and {rewards!r}") from None
        return [(self.index(arm), checked_reward(reward)) for arm, reward in pairs]

    def _require_pending(self, index: int, count: int) -> None:
        pending = self.stats.assigned[index] - self.stats.pulls[index]
        if count > pending:
            raise UnexpectedReward(
                f"arm {self.arms[index]!r} has {pending} pending assignments; got {count} rewards",
                hint="record(arm, reward) counts a pull that was not asked for",
            )


def _open_asks(data: Any, stats: ArmStats) -> list[deque[tuple[int, float]]]:
    """Return number and probability of the asks of each arm without a reward, from plain data."""
    expected = "must be a list per arm, with number and probability of each ask without a reward"
    try:
        asks = [
            deque(
                (checks.whole_number("number", number, 0), checks.number_between("probability", probability, 0, 1))
                for number, probability in one
            )
            for one in data
        ]
    except (TypeError, ValueError):
        raise InvalidInput.of("open", expected, data) from None
    if list(map(len, asks)) != stats.pending.tolist():
        raise InvalidInput.of("open", expected, data)
    return asks


def _arm_names(n_arms: int | None, arms: Sequence[str] | None) -> tuple[Arm, ...]:
    if (n_arms is None) == (arms is None):
        raise InvalidInput("give either n_arms or arms, the names; got " + ("neither" if arms is None else "both"))
    if arms is None:
        return tuple(range(checks.whole_number("n_arms", n_arms, 1)))
    if isinstance(arms, str) or not hasattr(arms, "__iter__"):
        raise InvalidInput(f"arms must be a list of names; got {arms!r}")
    arms = list(arms)
    if not all(type(name) is str and name for name in arms):
        raise InvalidInput(f"arms must be a list of names; got {arms!r}")
    if not arms:
        raise InvalidInput("arms must have at least one name; got none")
    if len(set(arms)) != len(arms):
        twice = sorted({name for name in arms if list(arms).count(name) > 1})
        raise InvalidInput(f"arm names must differ; got {', '.join(twice)} more than once")
    return tuple(arms)
