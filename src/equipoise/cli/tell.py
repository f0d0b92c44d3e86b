"""The commands `equipoise tell` and `equipoise correct`: rewards of units, one or a file of them."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.ask import KeepGoing
from equipoise.cli.options import AsJson, option
from equipoise.cli.stores import (
    DEFAULT_STORE,
    ExperimentName,
    Key,
    Quiet,
    StoreUrl,
    Who,
    open_experiment,
    print_answer,
)
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.experiment import ToldReward

Unit = Annotated[str | None, typer.Argument(metavar="UNIT", help="Whose reward it is.", show_default=False)]
Reward = Annotated[float | None, typer.Argument(metavar="REWARD", help="The reward.", show_default=False)]
RewardFile = Annotated[
    str | None, option("--file", "Units", "FILE", "Rewards: CSV with columns unit and reward; - reads stdin.")
]
RightUnit = Annotated[str, typer.Argument(metavar="UNIT", help="Whose reward it is.", show_default=False)]
RightReward = Annotated[float, typer.Argument(metavar="REWARD", help="The right reward.", show_default=False)]
Reason = Annotated[str, option("--reason", "Units", "TEXT", "Why, for the log.")]


def tell(
    name: ExperimentName,
    unit: Unit = None,
    reward: Reward = None,
    file: RewardFile = None,
    keep_going: KeepGoing = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Record the reward of a unit, however late, or those of a file; telling the same again changes nothing."""
    if (unit is None) == (file is None):
        raise InvalidInput(f"give UNIT and REWARD, or --file; got {'neither' if unit is None else 'both'}")
    if unit is not None and reward is None:
        raise InvalidInput("the REWARD is missing", hint="equipoise tell NAME UNIT REWARD")
    experiment = open_experiment(store, name, key, who, quiet=quiet)
    if unit is not None and reward is not None:
        _print(experiment.tell(unit, reward), "told before", as_json)
        return
    from equipoise.cli.feeding import feed
    from equipoise.cli.unit_files import read_rewards

    source, rows = read_rewards(str(file))
    counts: Counter[str] = Counter()
    feed(
        rows,
        source,
        lambda group: experiment.tell_many([(row.unit, row.reward) for row in group]),  # type: ignore[misc]
        lambda answer: counts.update(new=answer.new, counted=answer.counted),
        noun="rewards",
        show=not quiet,
        keep_going=keep_going,
    )
    n_new, n_counted = counts["new"], counts["counted"]
    data = {"n_rewards": len(rows), "n_new": n_new, "n_counted": n_counted}
    text = (
        f"{len(rows):,} rewards: {n_new:,} new, {len(rows) - n_new:,} told before; {n_counted:,} are in the estimates"
    )
    print_answer(data, text, as_json)


def correct(
    name: ExperimentName,
    unit: RightUnit,
    reward: RightReward,
    reason: Reason,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Put another reward in the place of the one told; the log keeps both, and the reason."""
    _print(open_experiment(store, name, key, who).correct(unit, reward, reason), "so it was before", as_json)


def _print(answer: "ToldReward", before: str, as_json: bool) -> None:
    state = "in the estimates" if answer.counted else "not in the estimates"
    text = f"{answer.unit}, on {answer.arm}: {answer.reward:g}, {state}{'' if answer.new else f'; {before}'}"
    print_answer(answer._asdict(), text, as_json)
