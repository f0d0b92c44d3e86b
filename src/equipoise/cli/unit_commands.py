"""Commands about units: ask, tell, correct and unit; ask and tell also take a file of units."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.exit_codes import INTERRUPTED, error_text
from equipoise.cli.options import AsJson, Quiet, option
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, Who, note, open_experiment, print_answer
from equipoise.errors import (
    EquipoiseError,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    ServiceError,
    StoreError,
    UnknownUnit,
    hint_in,
)

if TYPE_CHECKING:
    from equipoise.cli.input_files import Row
    from equipoise.experiment import ToldReward

KeepGoing = Annotated[bool, option("--keep-going", "Units", None, "Go on after a line that is refused.")]
COLUMNS = ("unit", "arm", "number", "probability", "forced")


def ask(
    name: ExperimentName,
    unit: Annotated[str | None, typer.Argument(metavar="UNIT", help="Who is assigned.", show_default=False)] = None,
    file: Annotated[
        str | None,
        option(
            "--file", "Units", "FILE", "Units: one per line, or CSV with a column unit and attributes; - reads stdin."
        ),
    ] = None,
    attributes: Annotated[
        str | None, option("--attributes", "Units", "JSON", "An object to log with a new assignment of UNIT.")
    ] = None,
    keep_going: KeepGoing = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print the arm of a unit, assigning one if it has none; or of every unit of a file, as CSV."""
    if (unit is None) == (file is None):
        raise InvalidInput(f"give a UNIT or --file; got {'neither' if unit is None else 'both'}")
    experiment = open_experiment(store, name, key, who, quiet=quiet)
    if unit is not None:
        found = experiment.ask(unit, _object(attributes))
        print_answer(found._asdict(), found.arm, as_json)
        return
    from equipoise.cli.input_files import read_units

    source, rows = read_units(str(file))
    write, new = _writer(as_json), Counter[bool]()

    def receive(found: Any) -> None:
        write(found)
        new[found.new] += 1

    feed(
        rows,
        source,
        lambda group: experiment.ask_many([(row.unit, row.attributes) for row in group]),
        receive,
        noun="units",
        show=not quiet and not sys.stdout.isatty(),  # on one screen, the progress bar and the assignments would mix
        keep_going=keep_going,
    )
    if not quiet:
        note(f"{len(rows):,} units: {new[True]:,} assigned now, {new[False]:,} before")


def _writer(as_json: bool) -> Any:
    """Return a function that prints an assignment as a row of CSV or a line of JSON."""
    import csv
    import json

    from equipoise.serialization import json_data

    if as_json:
        return lambda found: print(json.dumps(json_data(found)), flush=True)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)

    def write(found: Any) -> None:
        writer.writerow([found.unit, found.arm, found.number, found.probability, str(found.forced).lower()])

    return write


def _object(text: str | None) -> dict[str, Any] | None:
    import json

    if text is None:
        return None
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput.of("attributes", f"must be a JSON object; {error}") from None
    if not isinstance(data, dict):
        raise InvalidInput.of("attributes", f"must be a JSON object; got {text}")
    return data


def tell(
    name: ExperimentName,
    unit: Annotated[str | None, typer.Argument(metavar="UNIT", help="Whose reward it is.", show_default=False)] = None,
    reward: Annotated[float | None, typer.Argument(metavar="REWARD", help="The reward.", show_default=False)] = None,
    file: Annotated[
        str | None, option("--file", "Units", "FILE", "Rewards: CSV with columns unit and reward; - reads stdin.")
    ] = None,
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
        _print_rewards(experiment.tell(unit, reward), "told before", as_json)
        return
    from equipoise.cli.input_files import read_rewards

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
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="Whose reward it is.", show_default=False)],
    reward: Annotated[float, typer.Argument(metavar="REWARD", help="The right reward.", show_default=False)],
    reason: Annotated[str, option("--reason", "Units", "TEXT", "Why, for the log.")],
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Replace the reward of a unit; the log keeps both, and the reason."""
    _print_rewards(open_experiment(store, name, key, who).correct(unit, reward, reason), "so it was before", as_json)


def _print_rewards(answer: "ToldReward", before: str, as_json: bool) -> None:
    state = "in the estimates" if answer.counted else "not in the estimates"
    text = f"{answer.unit}, on {answer.arm}: {answer.reward:g}, {state}{'' if answer.new else f'; {before}'}"
    print_answer(answer._asdict(), text, as_json)


def unit(
    name: ExperimentName,
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="Who was assigned.", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Print the arm of a unit and what became of its reward; nothing is written."""
    found = open_experiment(store, name, key).unit(unit)
    if found is None:
        raise UnknownUnit(
            f"unit {unit!r} was never assigned in experiment {name!r}", hint="equipoise ask NAME UNIT assigns it"
        )
    how = f"decision {found.number:,}, probability {found.probability:.4g}{', forced' * found.forced}"
    reward = "no reward" if found.reward is None else f"reward {found.reward!r}"
    told = f"{unit}: {found.arm} ({how}, {found.at:%Y-%m-%d %H:%M:%S} UTC); {reward}, {found.state}"
    print_answer(found.to_dict(), told, as_json)


GROUP = 500
"""Units per transaction: more would not be faster, and would make other writers wait."""
_NOT_ABOUT_A_ROW = (StoreError, NotAllowed, NotAuthenticated, ServiceError)


def feed(
    rows: "Sequence[Row]",
    source: str,
    send: "Callable[[Sequence[Row]], list[Any]]",
    receive: Callable[[Any], None],
    *,
    noun: str,
    show: bool,
    keep_going: bool,
) -> None:
    """Send rows in groups, and pass each group's results to `receive` once they are durable.

    A group is recorded whole or not at all. If something in it is refused, its rows are sent one by one up to the first
    that is refused, which is reported with its line; with `keep_going` the others are sent as well.
    """
    from equipoise.progress import StepBar

    n_done, refused = 0, 0
    bar = StepBar(len(rows), f"sending {noun}", noun=noun) if show else None

    def send_singly(group: "Sequence[Row]") -> None:
        nonlocal n_done, refused
        for row in group:
            try:
                (answer,) = send([row])
            except _NOT_ABOUT_A_ROW:
                raise
            except EquipoiseError as error:
                wrong = EquipoiseError(f"{source}, line {row.line}: {error.message}", hint=error.hint)
                if not keep_going:
                    raise wrong from None
                refused += 1
                note(f"refused: {error_text(wrong)}")
            else:
                n_done += 1
                receive(answer)

    try:
        with bar or nullcontext():
            for start in range(0, len(rows), GROUP):
                group = rows[start : start + GROUP]
                try:
                    answers = send(group)
                except _NOT_ABOUT_A_ROW:
                    raise
                except EquipoiseError:
                    send_singly(group)
                else:
                    n_done += len(group)
                    for answer in answers:
                        receive(answer)
                if bar is not None:
                    bar.show(start + len(group))
    except KeyboardInterrupt:
        note(f"interrupted; {_so_far(n_done, len(rows), noun)}, the same command does the rest")
        raise typer.Exit(INTERRUPTED) from None
    except EquipoiseError as error:
        if n_done:
            more = f"{_so_far(n_done, len(rows), noun)}; the same command again is harmless"
            error.hint = more if error.hint is None else f"{hint_in(error.hint, 'command')}\n{more}"
        raise
    if refused:
        raise EquipoiseError(f"{refused:,} of {len(rows):,} {noun} of {source} were refused; the others are recorded")


def _so_far(n_done: int, n_rows: int, noun: str) -> str:
    return f"{n_done:,} of {n_rows:,} {noun} are recorded"
