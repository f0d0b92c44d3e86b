"""What the demo ends with: what people gained against equal shares, how well the arms are known, and the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.experiment_tables import Line

if TYPE_CHECKING:
    from equipoise.experiment import Status
    from equipoise.experiment.verifying import Verification
    from equipoise.paper.real_experiments import RealExperiment


def verdict_lines(real: RealExperiment, status: Status, verified: Verification) -> list[Line]:
    """Return the verdict; the true means are known here, since the people were simulated with them."""
    lines = [("participants", text) for text in _gain(real, status)]
    lines += [("accuracy", text) for text in _accuracy(real, status)]
    replayed = f"{verified.n_events:,} events with {verified.n_decisions:,} decisions replayed: all as recorded"
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
    more = "more" if each >= 0 else "fewer"
    return [
        f"{abs(each):.0f} {real.outcome} {more} each than with equal shares ({each / float(mean.mean()):+.1%})",
        f"{abs(each) * status.n_assigned:,.0f} {more} in all",
    ]


def _accuracy(real: RealExperiment, status: Status) -> list[str]:
    """Return how well the arms are known, and at what price."""
    pulls = np.array([arm.rewarded for arm in status.arms])
    if pulls.min() == 0:
        return [f"{np.count_nonzero(pulls == 0)} of {pulls.size} arms have no reward yet"]
    std = np.asarray(real.arms.std)
    ratio = float((std / np.sqrt(pulls)).mean() / (std / np.sqrt(pulls.sum() / pulls.size)).mean())
    lines = [f"errors {ratio:.2f} times those with equal shares, on average"]
    known = [(arm, mean) for arm, mean in zip(status.arms, real.arms.mean, strict=True) if arm.half_width is not None]
    if known:
        held = sum(arm.low <= mean <= arm.high for arm, mean in known if arm.low is not None and arm.high is not None)
        widths = [arm.half_width for arm, _ in known if arm.half_width is not None]
        which = "every arm is" if len(known) == len(status.arms) else f"{len(known)} of {len(status.arms)} arms are"
        lines.append(f"{which} known to within {min(widths):.0f} to {max(widths):.0f} {real.outcome}")
        lines.append(f"{held} of {len(known)} intervals hold the true mean")
    return lines
