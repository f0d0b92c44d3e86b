"""One thing to reproduce: a table or figure of the paper, or a study beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.paper.findings import Finding
    from equipoise.paper.work import Work


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
