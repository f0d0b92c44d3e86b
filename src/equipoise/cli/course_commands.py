"""Commands that show how experiments go over time: timeline, outlook."""

from typing import Annotated

import typer

from equipoise.cli.options import AsCsv, AsJson, option, output_format
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, open_experiment

_COUNTS = ("assigned", "rewarded", "corrected", "expired", "withdrawn", "assigned_so_far", "counted_so_far")
_NUMBERS = ("mean", "std", "low", "high", "share_given", "share_wanted")
_COHORT = ("answered", "matured", "missing")


def timeline(
    name: ExperimentName,
    every: Annotated[
        str, option("--every", "Output", "PERIOD", 'Length of a period: hour, "6 hours", day or week.')
    ] = "day",
    since: Annotated[
        str | None,
        option("--since", "Output", "INSTANT", "Begin with the period of this instant, such as 2027-06-30T00:00Z."),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show an experiment over time: people, rewards, shares and means by period."""
    form = output_format(as_json, as_csv)
    found = open_experiment(store, name, key).timeline(every, since)
    from equipoise import terminal
    from equipoise.course_table import timeline_lines

    if form == "json":
        terminal.print_json(found.to_dict())
    elif form == "csv":
        names = (*_COUNTS, *_NUMBERS, *_COHORT)
        within = [f"{what}_{delay}" for delay in found.delays for what in ("old_enough", "rewarded_within")]
        rows = []
        for row, start in enumerate(found.start):
            for place, arm in enumerate(found.arms):
                values = [getattr(found, column)[row, place].item() for column in names]
                delays = [
                    getattr(found, what)[row, place, delay].item()
                    for delay in range(len(found.delays))
                    for what in ("old_enough", "rewarded_within")
                ]
                rows.append([start.isoformat(), arm, *("" if one != one else one for one in values), *delays])
        terminal.print_csv(["start", "arm", *names, *within], rows)
    else:
        typer.echo("\n".join(timeline_lines(found)))


def outlook(name: ExperimentName, store: StoreUrl = DEFAULT_STORE, key: Key = None, as_json: AsJson = False) -> None:
    """Show how many people come a day, and when each stopping rule will be met."""
    found = open_experiment(store, name, key).outlook()
    from equipoise import terminal
    from equipoise.course_table import outlook_lines

    if as_json:
        terminal.print_json(found.to_dict())
    else:
        typer.echo("\n".join(outlook_lines(found)))
