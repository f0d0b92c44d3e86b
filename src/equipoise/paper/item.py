"""One thing to reproduce: a table or figure of the paper, or a study beyond it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.policies import Policy
from equipoise.simulation import simulate
from equipoise.simulation.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from equipoise.arms import Arms, Gaussian
    from equipoise.paper.findings import Finding


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item of the reproduction.

    Attributes
    ----------
    name : str
        As typed: "fig3-left".
    title : str
    place : str
        Where it is in the paper; "beyond the paper" where it is not.
    claim : str
        What the paper says of it, in our words.
    compute : function
        Computes it with the simulations of a `Work`; the same for any number of workers.
    n_steps : int
        About how many steps the full reproduction simulates for it, which the progress bar divides its length by.
    """

    name: str
    title: str
    place: str
    claim: str
    compute: Callable[[Work], Finding]
    n_steps: int = 0


SEED = 2017
"""Of every simulation here: the year of the paper, and not searched for."""


class Work:
    """How much to simulate, and what was simulated.

    Parameters
    ----------
    quick : bool
        Whether to take a tenth of the replications, at least 20.
    workers : int, optional
        Threads; one per core by default.
    treefrog : Gaussian, optional
        The 64 arms of the educational experiment, for those who have them.
    on_progress : function of int, optional
        Called with the number of steps simulated so far.

    Attributes
    ----------
    n_steps : int
        Steps simulated so far.
    """

    def __init__(
        self,
        *,
        quick: bool = False,
        workers: int | None = None,
        treefrog: Gaussian | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self.quick, self.workers, self.on_progress = quick, workers, on_progress
        self.given_treefrog = treefrog
        self.n_steps = 0
        self._played: dict[str, Runs] = {}

    def replications(self, full: int) -> int:
        """Return how many replications to play where `full` are right for the full reproduction."""
        return min(full, max(20, full // 10)) if self.quick else full

    def simulate(
        self,
        policies: Policy | Sequence[Policy],
        arms: Arms,
        horizon: int,
        replications: int,
        *,
        checkpoints: Sequence[int] | None = None,
    ) -> Runs:
        """Return runs as `equipoise.simulate` does; those asked for before are not played again.

        `replications` are those of the full reproduction.
        """
        # A single policy that another item plays among others is simulated on its own, hence one at a time.
        chosen = [policies] if isinstance(policies, Policy) else policies
        parts = [self._one(policy, arms, horizon, self.replications(replications), checkpoints) for policy in chosen]
        return Runs.stacked(parts)

    def _one(
        self, policy: Policy, arms: Arms, horizon: int, replications: int, checkpoints: Sequence[int] | None
    ) -> Runs:
        key = json.dumps([policy.to_dict(), arms.to_dict(), horizon, replications, list(checkpoints or [])])
        if key not in self._played:
            before = self.n_steps

            def show(done: int, _total: int) -> None:
                if self.on_progress is not None:
                    self.on_progress(before + done)

            self._played[key] = simulate(
                policy,
                arms,
                horizon,
                replications,
                seed=SEED,
                checkpoints=checkpoints,
                workers=self.workers,
                progress=show,
            )
            self.n_steps = before + horizon * replications
        return self._played[key]
