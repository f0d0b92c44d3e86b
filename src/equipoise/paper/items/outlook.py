"""The policies of the paper's outlook, other forcings, and compromises of others  [Sect. 6; beyond the paper]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise._types import FloatArray
from equipoise.metrics import summarise
from equipoise.paper.curve_panels import Line, Panel, curve_figure
from equipoise.paper.findings import Cell, Claim, Figure, Finding, Item, Measured, Table
from equipoise.paper.instances import FIVE_ARMS, TWO_ARMS, Work
from equipoise.policies import (
    NARP,
    SARP,
    ClippedThompson,
    ForcingBalance,
    OptimisticBalance,
    Policy,
    PooledBalance,
    PostDiff,
    ThompsonBalance,
    UCBExplore,
    Uniform,
)

if TYPE_CHECKING:
    from equipoise.arms import Arms, Gaussian

FORCINGS = (0.01, 0.1, 0.3, 1.0, 3.0)
PAPER, LESS = 1.0, 0.3
STEPS = (50, 200, 1_000, 5_000, 20_000)
"""Steps in the tables; the charts have more."""
CHECKPOINTS = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
HORIZON = CHECKPOINTS[-1]
REPLICATIONS, SLOW_REPLICATIONS, QUICK_SLOW_REPLICATIONS = 200, 40, 10
"""The slow policies solve from scratch at every step, and UCBExplore needs separate runs for every horizon."""

THOMPSON, OPTIMISTIC, EXPLORE, EQUAL = "ThompsonBalance", "OptimisticBalance", "UCBExplore", "Uniform"
POOLED, NEYMAN, STATIC, EVEN, CLIPPED = "PooledBalance", "NARP", "SARP", "PostDiff", "ClippedThompson"
RIVALS = (NEYMAN, STATIC, EVEN, CLIPPED)


def rivals(arms: Arms, reward_weight: float) -> dict[str, Policy]:
    """Return the compromises of others. Those without a weight have the dial that suits these arms, as if known.

    `PostDiff` counts differences up to the true one as small, so that about half the pulls are spread evenly; smaller
    values lead to Thompson sampling in the end and larger ones to equal shares. The floor is the one at which the
    trade-off is largest if all other pulls go to the best arm.
    """
    n_arms, best = arms.n_arms, int(np.argmax(arms.mean))
    floors = np.geomspace(1e-6, 1.0, 2_000) / n_arms
    shares = np.repeat(floors[:, None], n_arms, axis=1)
    shares[:, best] = 1.0 - (n_arms - 1) * floors
    value = reward_weight * shares @ arms.mean - (1.0 - reward_weight) * np.mean(arms.std / np.sqrt(shares), axis=1)
    return {
        NEYMAN: NARP(reward_weight=reward_weight, draws=1),
        STATIC: SARP(reward_weight=reward_weight, draws=1),
        EVEN: PostDiff(small_difference=float(np.ptp(arms.mean)), draws=1),
        CLIPPED: ClippedThompson(floor=float(floors[np.argmax(value)]), draws=1),
    }


@dataclass(frozen=True)
class Setting:
    """Arms to play on, and the reward weight."""

    key: str
    title: str
    arms: Gaussian
    reward_weight: float


SETTINGS = (
    Setting("five-arms", "five arms, w = 0.9", FIVE_ARMS, 0.9),
    Setting("setting-2", "two arms, setting 2, w = 0.4", TWO_ARMS[1], 0.4),
    Setting("setting-3", "two arms, setting 3, w = 0.4", TWO_ARMS[2], 0.4),
)


@dataclass(frozen=True)
class Curves:
    """Rescaled regret of every policy in a setting: arrays (n_replications, n_checkpoints) by name."""

    setting: Setting
    regret: dict[str, FloatArray]

    def mean(self, name: str, step: int) -> float:
        """Return the mean over replications at a step."""
        return float(self.at(name, step).mean())

    def at(self, name: str, step: int) -> FloatArray:
        """Return the rescaled regret of all replications at a step."""
        return np.asarray(self.regret[name][:, CHECKPOINTS.index(step)])


def compute(work: Work) -> Finding:
    """Simulate all policies in the three settings."""
    five, second, third = curves = [_curves(work, setting) for setting in SETTINGS]
    paper, less = _forced(PAPER), _forced(LESS)
    ratio, ratio_error = _ratio(five.at(paper, 1_000), five.at(less, 1_000))
    tiny, small = _forced(0.01), _forced(0.1)
    times = [five.mean(paper, step) / five.mean(less, step) for step in STEPS]
    return Finding(
        item=ITEM.name,
        found=[
            "On the five arms, forcing with eta = 0.3 instead of 1 divides the mean rescaled regret at n = 1,000 by "
            f"{ratio:.0f} (s.e. {ratio_error:.0f}); at n = {_listed(STEPS)} by {', '.join(f'{x:.2g}' for x in times)}. "
            "With eta = 1 each of the five arms is owed sqrt(n) pulls, while the smallest optimal share is 0.7%: what "
            "is forced exceeds what is optimal until n is near 20,000, and from then on the two are the same.",
            "Too little forcing is a gamble. With eta = 0.01 an arm whose first two rewards are close together looks "
            "free of noise, gets almost no share, and is hardly ever forced: the worst of "
            f"{five.regret[tiny].shape[0]} replications has a rescaled regret of {five.at(tiny, HORIZON).max():.3g} at "
            f"n = 20,000 (eta = 0.3: {five.at(less, HORIZON).max():.2g}), and the mean is "
            f"{five.mean(tiny, HORIZON):.2g} against {five.mean(less, HORIZON):.2g}. With two arms even eta = 0.1 "
            f"fails now and then: in setting 2 the worst replication has {second.at(small, 200).max():.3g} at n = 200, "
            f"with eta = 0.3 it has {second.at(less, 200).max():.2g}. The 0.95-quantiles do not show that; the largest "
            "values do.",
            "In the two-arm settings the optimal shares are far from zero, so eta = 1 forces nothing that is not "
            f"optimal and is the safest: at n = 50 its mean is {second.mean(paper, 50):.2g} in setting 2, against "
            f"{second.mean(less, 50):.2g} with eta = 0.3. From n = 200 on the two are the same. eta = 0.3 is a good "
            "choice where some optimal shares are small and n is below some ten thousand; 0.01 and 0.1 are not safe.",
            "ThompsonBalance needs no forcing and is close to the best forcing everywhere: "
            f"{five.mean(THOMPSON, 1_000):.2g} at n = 1,000 on the five arms, {third.mean(THOMPSON, 1_000):.2g} in "
            f"setting 3. OptimisticBalance is reliable and slow: {five.mean(OPTIMISTIC, 1_000):.2g} and still "
            f"{five.mean(OPTIMISTIC, HORIZON):.2g} at n = 20,000 on the five arms, since its bounds on spreads shrink "
            "slowly. UCBExplore follows another objective, intervals as wide for quiet arms as for noisy ones that "
            "count less the longer the horizon is: in the end its rescaled regret grows with n, to "
            f"{five.mean(EXPLORE, HORIZON):.3g}; equal shares have {five.mean(EQUAL, HORIZON):.3g}.",
            "Other fields have their own compromises: a floor under the probabilities of Thompson sampling, even "
            "assignment where arms hardly differ (TS-PostDiff), and Thompson sampling mixed with equal shares or with "
            "Neyman's (SARP and NARP). Their shares do not tend to the optimal ones, so their regret stops falling "
            "and grows in the end: on the five arms at n = 1,000 and 20,000 "
            + ", ".join(
                f"{name} has {five.mean(name, 1_000):.2g} and {five.mean(name, HORIZON):.2g}"
                for name in (*RIVALS, POOLED)
            )
            + ". At n = 50 there they are better than PooledBalance, which takes turns for four rounds and is cautious "
            "after that: "
            + ", ".join(f"{name} {five.mean(name, 50):.2g}" for name in (THOMPSON, NEYMAN, STATIC, CLIPPED, POOLED))
            + ". With two arms any shares are a mixture of equal ones and all for the best arm, so the right floor "
            "leads to the optimum; but one must know it. Set as if the arms were known, in setting 2 it has "
            f"{_with_error(second.at(CLIPPED, HORIZON))} at n = 20,000, which is not clearly more than the "
            f"{_with_error(second.at(POOLED, HORIZON))} of PooledBalance.",
        ],
        differs=[
            "The paper plays eta = 1 alone and leaves these policies to future work. Rewards are Gaussian, so their "
            "range is taken as four of the largest standard deviations for UCBExplore; OptimisticBalance has the "
            "bounds for rewards in [0, 1] as they are, like the paper's Naive-UCB. SARP and NARP follow the abstract "
            "of Lin, Ham and Bojinov (2026); their rate is chosen for the trade-off of this paper."
        ],
        measured=[Measured(key="outlook.ratio-at-1000", value=ratio, standard_error=ratio_error)],
        claims=_claims(five, second, third),
        tables=[*(_table(some) for some in curves), _tails_table(curves)],
        figures=_figures(curves),
    )


def _curves(work: Work, setting: Setting) -> Curves:
    weight, spread = setting.reward_weight, 4 * float(setting.arms.std.max())
    slow_count = QUICK_SLOW_REPLICATIONS if work.quick else SLOW_REPLICATIONS
    fast: dict[str, Policy] = {_forced(eta): ForcingBalance(reward_weight=weight, forcing=eta) for eta in FORCINGS}
    fast[EQUAL] = Uniform()
    fast[POOLED] = PooledBalance(reward_weight=weight)
    slow: dict[str, Policy] = {
        THOMPSON: ThompsonBalance(reward_weight=weight, draws=1),
        OPTIMISTIC: OptimisticBalance(reward_weight=weight),
        **rivals(setting.arms, weight),
    }
    regret = {
        name: values
        for policies, count in ((fast, REPLICATIONS), (slow, slow_count))
        for name, values in zip(policies, _regrets(work, setting, policies, count), strict=True)
    }
    regret[EXPLORE] = np.concatenate(
        [
            work.simulate(
                UCBExplore(reward_weight=weight, horizon=horizon, scale=spread),
                setting.arms,
                horizon,
                slow_count,
                checkpoints=[horizon],
            ).rescaled_regret(reward_weight=weight)[0]
            for horizon in CHECKPOINTS
        ],
        axis=1,
    )
    order = [*map(_forced, FORCINGS), POOLED, THOMPSON, *RIVALS, OPTIMISTIC, EXPLORE, EQUAL]
    return Curves(setting, {name: regret[name] for name in order})


def _regrets(work: Work, setting: Setting, policies: dict[str, Policy], count: int) -> FloatArray:
    runs = work.simulate(list(policies.values()), setting.arms, HORIZON, count, checkpoints=list(CHECKPOINTS))
    return runs.rescaled_regret(reward_weight=setting.reward_weight)


def _claims(five: Curves, second: Curves, third: Curves) -> list[Claim]:
    paper, less, tiny = _forced(PAPER), _forced(LESS), _forced(0.01)
    ratio = five.mean(paper, 1_000) / five.mean(less, 1_000)
    worst = {some.setting.title: [float(some.at(eta, 200).max()) for eta in (tiny, less)] for some in (second, third)}
    same = [float(abs(some.at(paper, 1_000) - some.at(less, 1_000)).max()) for some in (second, third)]
    everywhere = (five, second, third)
    thompson = {some.setting.title: some.mean(THOMPSON, 1_000) / some.mean(less, 1_000) for some in everywhere}
    growth = [five.mean(EXPLORE, step) for step in (2_000, 5_000, 10_000, HORIZON)]
    compromises = {
        step: min(five.mean(name, step) for name in RIVALS) / five.mean(POOLED, step) for step in (1_000, HORIZON)
    }
    return [
        Claim(
            key="outlook.less-forcing",
            text="On the five arms eta = 0.3 has at most a twentieth of the regret of eta = 1 at n = 1,000.",
            holds=ratio > 20,
            evidence=f"{five.mean(paper, 1_000):.3g} against {five.mean(less, 1_000):.3g}: {ratio:.1f} times",
        ),
        Claim(
            key="outlook.more-forcing",
            text="eta = 3 has more regret than eta = 1 at every n on the five arms.",
            holds=all(five.mean(_forced(3.0), step) > five.mean(paper, step) for step in STEPS),
            evidence=", ".join(
                f"{five.mean(_forced(3.0), step):.3g} against {five.mean(paper, step):.3g} (n = {step:,})"
                for step in STEPS
            ),
        ),
        Claim(
            key="outlook.too-little-forcing",
            text="With eta = 0.01 the worst replication at n = 200 is worse than with eta = 0.3 in both two-arm "
            "settings, ten times at least.",
            holds=all(bad > 10 * good for bad, good in worst.values()),
            evidence="; ".join(f"{bad:.3g} against {good:.2g} ({title})" for title, (bad, good) in worst.items()),
        ),
        Claim(
            key="outlook.no-difference-where-shares-are-large",
            text="In the two-arm settings eta = 0.3 and eta = 1 have the same regret at n = 1,000, in every "
            "replication.",
            holds=max(same) < 0.01,
            evidence=f"the largest difference is {max(same):.2g}",
        ),
        Claim(
            key="outlook.thompson-without-forcing",
            text="ThompsonBalance, which forces nothing, has at most four times the regret of eta = 0.3 at n = 1,000 "
            "in every setting.",
            holds=max(thompson.values()) < 4,
            evidence="; ".join(f"{times:.2g} times ({title})" for title, times in thompson.items()),
        ),
        Claim(
            key="outlook.another-objective",
            text="The rescaled regret of UCBExplore grows with the horizon on the five arms, from n = 2,000 on.",
            holds=bool((np.diff(growth) > 0).all()),
            evidence=" < ".join(f"{value:.3g}" for value in growth),
        ),
        Claim(
            key="outlook.compromises-of-others",
            text="On the five arms NARP, SARP, PostDiff and clipped Thompson sampling have at least three times the "
            "regret of PooledBalance at n = 1,000 and 20,000, though the dials of the last two are set as if the arms "
            "were known.",
            holds=min(compromises.values()) > 3,
            evidence="; ".join(f"the best has {times:.2g} times (n = {step:,})" for step, times in compromises.items()),
        ),
    ]


def _table(curves: Curves) -> Table:
    rows: list[list[Cell]] = []
    for name, values in curves.regret.items():
        summary = summarise(values, axis=0)
        # Values that are the same in every replication differ by rounding only.
        spread = np.where(np.ptp(values, axis=0) < 1e-9 * summary.mean, 0.0, summary.standard_error)
        numbers = [(float(summary.mean[k]), float(spread[k])) for k in map(CHECKPOINTS.index, STEPS)]
        rows.append([name, values.shape[0], *(number for pair in numbers for number in pair)])
    columns = [column for step in STEPS for column in (f"n = {step:,}", f"s.e. at {step:,}")]
    return Table(
        key=curves.setting.key,
        title=f"Mean rescaled regret: {curves.setting.title}",
        columns=["policy", "replications", *columns],
        rows=rows,
        digits=dict.fromkeys(columns[::2], ".3g") | dict.fromkeys(columns[1::2], ".1g"),
    )


def _tails_table(curves: list[Curves]) -> Table:
    steps = (50, 200, 1_000, HORIZON)
    rows: list[list[Cell]] = []
    for some in curves:
        for eta in FORCINGS:
            at = [some.at(_forced(eta), step) for step in steps]
            tails = [number for values in at for number in (float(np.quantile(values, 0.95)), float(values.max()))]
            rows.append([some.setting.title, eta, *tails])
    columns = [column for step in steps for column in (f"0.95-quantile, n = {step:,}", f"worst, n = {step:,}")]
    return Table(
        key="tails",
        title="How bad it can get: rescaled regret of ForcingBalance by its forcing",
        columns=["setting", "eta", *columns],
        rows=rows,
        digits={"eta": "g"} | dict.fromkeys(columns, ".3g"),
        note=f"Over {curves[0].regret[_forced(PAPER)].shape[0]} replications.",
    )


def _figures(curves: list[Curves]) -> list[Figure]:
    steps = np.array(CHECKPOINTS)

    def panels(names: list[str], *, worst: bool = False) -> list[Panel]:
        return [
            Panel(
                title=some.setting.title,
                y_title="rescaled regret of the worst replication" if worst else "mean rescaled regret",
                lines=[
                    Line(name=label + name, step=steps, value=values.max(axis=0) if worst else values.mean(axis=0))
                    for name in names
                    for label in ["ForcingBalance, " if name.startswith("eta") and EXPLORE in names else ""]
                    for values in [some.regret[name]]
                ],
            )
            for some in curves
        ]

    forcings = list(map(_forced, FORCINGS))
    count, slow = (curves[0].regret[name].shape[0] for name in (_forced(PAPER), THOMPSON))
    return [
        curve_figure(
            panels(forcings),
            title="Less forcing pays where optimal shares are small, up to a point",
            subtitle=f"ForcingBalance, mean of {count} replications; the paper has eta = 1",
            key="outlook-forcing",
            caption="ForcingBalance with forcings from 0.01 to 3: mean rescaled regret. Less forcing pays where "
            "optimal shares are small (left), until single bad replications raise the mean.",
        ),
        curve_figure(
            panels([*forcings, EQUAL], worst=True),
            title="Too little forcing is a gamble",
            subtitle=f"ForcingBalance, the worst of {count} replications; equal shares for comparison",
            key="outlook-worst",
            caption="The same runs: the worst replication. With a forcing of 0.01 or 0.1 it can be worse than equal "
            "shares.",
        ),
        curve_figure(
            panels([_forced(LESS), _forced(PAPER), THOMPSON, OPTIMISTIC, EXPLORE]),
            title="Posterior sampling needs no forcing; optimism is slower",
            subtitle=f"mean of {count} replications of ForcingBalance, {slow} of the others",
            key="outlook-policies",
            caption="The policies of the outlook beside ForcingBalance with the paper's forcing and a smaller one.",
        ),
        curve_figure(
            panels([POOLED, *RIVALS, EQUAL]),
            title="Compromises of other fields do not tend to the best shares",
            subtitle=f"mean of {count} replications of PooledBalance and Uniform, {slow} of the others",
            key="outlook-compromises",
            caption="Thompson sampling mixed with other assignments: NARP, SARP, PostDiff and a floor under the "
            "probabilities (the last two with dials set as if the arms were known), beside PooledBalance and equal "
            "shares.",
        ),
    ]


def _ratio(above: FloatArray, below: FloatArray) -> tuple[float, float]:
    """Return the ratio of two means over the same replications and its standard error."""
    ratio = float(above.mean() / below.mean())
    left = above - ratio * below
    return ratio, float(left.std(ddof=1) / np.sqrt(left.size) / below.mean())


def _with_error(values: FloatArray) -> str:
    return f"{values.mean():.2g} (s.e. {values.std(ddof=1) / np.sqrt(values.size):.1g})"


def _forced(eta: float) -> str:
    return f"eta = {eta:g}"


def _listed(steps: tuple[int, ...]) -> str:
    return ", ".join(f"{step:,}" for step in steps)


ITEM = Item(
    name="outlook",
    title="Other forcings, the policies of the outlook, and compromises of others",
    place="Sect. 6; beyond the paper",
    claim="The paper forces with eta = 1 and names Thompson-style and optimistic variants as future work. Which of "
    "them has the smallest regret, and when? And how do compromises that others propose compare?",
    compute=compute,
    n_steps=103_100_000,
)
