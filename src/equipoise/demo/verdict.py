"""What the demo ends with: what people gained against equal shares, how well the arms are known, and the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.experiment_tables import Line
from equipoise.printing import counted

if TYPE_CHECKING:
    from equipoise.experiment import Status
    from equipoise.experiment.verifying import Verification
    from equipoise.paper.real_experiments import RealExperiment


def verdict_lines(real: RealExperiment, status: Status, verified: Verification) -> list[Line]:
    """Return the verdict; the true means are known here, since the people were simulated with them."""
    lines = [("participants", text) for text in _gain(real, status)]
    lines += [("accuracy", text) for text in _accuracy(real, status)]
    decisions = counted(verified.n_decisions, "decision")
    replayed = f"{counted(verified.n_events, 'event')} with {decisions} replayed: all as recorded"
    lines.append(("verify", replayed))
    shown, last = [], ""
    for name, text in lines:
        shown.append(Line(f"{name if name != last else '':12}  {text}"))
        last = name
    return shown


def _gain(real: RealExperiment, status: Status) -> list[str]:
    """Return what people did more than under equal shares, in expectation: chance plays no part in it."""
    assigned, mean = np.array([arm.assigned for arm in status.arms]), np.asarray(real.arms.mean)
    each = float(assigned @ mean) / status.n_assigned - float(mean.mean())
    more, digits = "more" if each >= 0 else "fewer", 0 if abs(each) >= 10 else 1
    in_all = f"{abs(each) * status.n_assigned:,.0f}"
    if in_all == "0":
        return [f"as many {real.outcome} as with equal shares"]
    lines = [
        f"{abs(each):.{digits}f} {real.outcome} {more} each than with equal shares ({each / float(mean.mean()):+.1%})",
        f"{in_all} {more} in all",
    ]
    if all(arm.half_width is None for arm in status.arms):
        lines.append("so few people tell little of what it does: more take part with --steps")
    return lines


def _accuracy(real: RealExperiment, status: Status) -> list[str]:
    """Return how well the arms are known, and at what price."""
    pulls = np.array([arm.rewarded for arm in status.arms])
    if pulls.min() == 0:
        n_unknown = np.count_nonzero(pulls == 0)
        return [f"{n_unknown} of {pulls.size} arms {'has' if n_unknown == 1 else 'have'} no reward"]
    std = np.asarray(real.arms.std)
    ratio = float((std / np.sqrt(pulls)).mean() / (std / np.sqrt(pulls.sum() / pulls.size)).mean())
    lines = [f"errors {ratio:.2f} times those with equal shares, on average"]
    known = [(arm, mean) for arm, mean in zip(status.arms, real.arms.mean, strict=True) if arm.half_width is not None]
    if known:
        held = sum(arm.low <= mean <= arm.high for arm, mean in known if arm.low is not None and arm.high is not None)
        widths = [arm.half_width for arm, _ in known if arm.half_width is not None]
        some = f"{len(known)} of {len(status.arms)} arms {'is' if len(known) == 1 else 'are'}"
        which = "every arm is" if len(known) == len(status.arms) else some
        within = f"{min(widths):.0f} to {max(widths):.0f}" if len(known) > 1 else f"{widths[0]:.0f}"
        lines.append(f"{which} known to within {within} {real.outcome}")
        intervals = counted(len(known), "interval")
        lines.append(f"{held} of {intervals} {'holds' if held == 1 else 'hold'} the true mean")
    return lines
