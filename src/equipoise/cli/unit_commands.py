"""Commands about units: ask, tell, correct and unit; ask and tell also take a file of units."""

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise import checks
from equipoise.cli import confirmation
from equipoise.cli.confirmation import Yes
from equipoise.cli.exit_codes import INTERRUPTED, error_text
from equipoise.cli.known_units import KnownUnits
from equipoise.cli.options import COUNT, AsCsv, AsJson, Quiet, option, output_format
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, Who, note, open_experiment, print_answer
from equipoise.errors import (
    EquipoiseError,
    Hint,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    ServiceError,
    StoreError,
    UnknownUnit,
    hint_in,
    visible,
)
from equipoise.experiment.names import MOST_LISTED
from equipoise.experiment.records import UnitStatus
from equipoise.files import STDIN

if TYPE_CHECKING:
    from equipoise.cli.unit_files import Row, UnitFile
    from equipoise.experiment import Experiment, ToldReward
    from equipoise.terminal import Format

_MEND = "mend the file, or record the other lines with --keep-going"
UnitColumn = Annotated[str | None, option("--column", "Units", "NAME", "The column of the units, if it is not unit.")]
KeepGoing = Annotated[bool, option("--keep-going", "Units", None, "Go on after a line that is refused.")]
COLUMNS = ("unit", "arm", "number", "probability", "forced")


def ask(
    name: ExperimentName,
    unit: Annotated[str | None, typer.Argument(metavar="UNIT", help="Who is assigned.", show_default=False)] = None,
    file: Annotated[
        str | None,
        option("--file", "Units", "FILE", "Units: one per line, or a table with a column unit; - reads stdin."),
    ] = None,
    column: UnitColumn = None,
    no_header: Annotated[
        bool, option("--no-header", "Units", None, "Every line of the file is one unit, the first one too.")
    ] = False,
    dry_run: Annotated[bool, option("--dry-run", "Safety", None, "Say what the file would do; assign nobody.")] = False,
    yes: Yes = False,
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
    if file is None and (column is not None or no_header or dry_run):
        raise InvalidInput("--column, --no-header and --dry-run are for --file; got a UNIT")
    experiment = open_experiment(store, name, key, who, quiet=quiet)
    if unit is not None:
        found = experiment.ask(unit, _object(attributes))
        print_answer(found._asdict(), found.arm, as_json)
        return
    from equipoise.cli.unit_files import read_units

    read = read_units(str(file), column, has_header=False if no_header else None)
    if not keep_going:
        read.require_right(_MEND)
    if dry_run:
        print("\n".join(map(visible, KnownUnits(experiment).summary(read).split("\n"))), flush=True)
        return
    if not yes and file != STDIN and confirmation.is_possible():
        confirmation.require_yes(KnownUnits(experiment).summary(read), "assign them?")
    rows = read.rows
    write, new = _writer(as_json), Counter[bool]()

    def receive(found: Any) -> None:
        write(found)
        new[found.new] += 1

    feed(
        read,
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
        str | None, option("--file", "Units", "FILE", "Rewards: a table with columns unit and reward; - reads stdin.")
    ] = None,
    column: UnitColumn = None,
    reward_column: Annotated[
        str | None, option("--reward-column", "Units", "NAME", "The column of the rewards, if it is not reward.")
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
    from equipoise.cli.unit_files import read_rewards

    read = _in_range(read_rewards(str(file), column, reward_column), experiment, reward_column)
    if not keep_going:
        read.require_right(_MEND)
    if read.note is not None and not quiet:
        note(f"note: {read.note}")
    rows, known = read.rows, KnownUnits(experiment)
    counts: Counter[str] = Counter()
    feed(
        read,
        lambda group: experiment.tell_many([(row.unit, row.reward) for row in group]),  # type: ignore[misc]
        lambda answer: counts.update(new=answer.new, counted=answer.counted),
        noun="rewards",
        show=not quiet,
        keep_going=keep_going,
        hint=lambda row, error: known.hint(row.unit) if isinstance(error, UnknownUnit) else error.hint,
    )
    n_new, n_counted = counts["new"], counts["counted"]
    data = {"n_rewards": len(rows), "n_new": n_new, "n_counted": n_counted}
    text = (
        f"{len(rows):,} rewards: {n_new:,} new, {len(rows) - n_new:,} told before; {n_counted:,} are in the estimates"
    )
    print_answer(data, text, as_json)


def _in_range(read: "UnitFile", experiment: "Experiment", reward_column: str | None) -> "UnitFile":
    """Move rewards outside the declared range to the wrong cells, where the settings may be seen."""
    from equipoise.cli.unit_files import REWARD, WrongCell

    try:
        configuration = experiment.configuration
    except NotAllowed:  # a key that may only assign; the service refuses them one by one
        return read
    if configuration.reward_range is None:
        return read
    right = [row for row in read.rows if row.reward is not None and configuration.allows(row.reward)]
    expected = f"a number in {configuration.range_text}"
    wrong = [
        WrongCell(row.line, reward_column or REWARD, expected, f"{row.reward:g}")
        for row in read.rows
        if row.reward is not None and not configuration.allows(row.reward)
    ]
    return read._replace(rows=right, wrong=sorted(read.wrong + wrong))


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


def withdraw(
    name: ExperimentName,
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="Who leaves.", show_default=False)],
    reason: Annotated[str, option("--reason", "Units", "TEXT", "Why, for the log.")],
    erase: Annotated[
        bool, option("--erase", "Units", None, "Also erase the name, attributes and reasons from the log, for good.")
    ] = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Take a unit out of the estimates for good; the log keeps that, and the reason."""
    experiment = open_experiment(store, name, key, who)
    found = experiment.withdraw(unit, reason)
    if erase:
        experiment.erase(unit)
    text = f"{unit}, on {found.arm}: withdrawn{' and erased' * erase}; no reward of it is in the estimates"
    print_answer(found.to_dict() | {"erased": erase}, text, as_json)


def _print_rewards(answer: "ToldReward", before: str, as_json: bool) -> None:
    state = "in the estimates" if answer.counted else "not in the estimates"
    text = f"{answer.unit}, on {answer.arm}: {answer.reward:g}, {state}{'' if answer.new else f'; {before}'}"
    print_answer(answer._asdict(), text, as_json)


def unit(
    name: ExperimentName,
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="Who was assigned.", show_default=False)],
    events: Annotated[bool, option("--events", "Units", None, "Also print all events of the unit.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Print the arm of a unit and what became of its reward; nothing is written."""
    experiment = open_experiment(store, name, key)
    found = experiment.unit(unit)
    if found is None:
        raise UnknownUnit(f"unit {unit!r} was never assigned in experiment {name!r}", hint=Hint.CHECK_UNIT)
    how = f"decision {found.number:,}, probability {found.probability:.4g}{', forced' * found.forced}"
    reward = "no reward" if found.reward is None else f"reward {found.reward!r}"
    told = f"{unit}: {found.arm} ({how}, {found.at:%Y-%m-%d %H:%M:%S} UTC); {reward}, {found.state}"
    if not events:
        print_answer(found.to_dict(), told, as_json)
        return
    log = experiment.unit_events(unit)
    print_answer(found.to_dict() | {"events": [event.to_dict() for event in log]}, told, as_json)
    if not as_json:
        for event in log:
            reward = "" if event.reward is None else f" {event.reward!r}"
            by = "" if event.who is None else f", by {event.who}"
            why = event.details.get("reason")
            what = f"event {event.number:,}: {event.kind}{reward}, {event.at:%Y-%m-%d %H:%M:%S} UTC{by}"
            print(visible(what if why is None else f"{what}: {why}"))


def units(
    name: ExperimentName,
    waiting: Annotated[bool, option("--waiting", "Units", None, "Those whose reward is still to come.")] = False,
    overdue: Annotated[bool, option("--overdue", "Units", None, "Those without a reward past their window.")] = False,
    held: Annotated[bool, option("--held", "Units", None, "Those whose reward is held until the window ends.")] = False,
    state: Annotated[
        str | None, option("--state", "Units", "STATE", "Or counted, defaulted, dropped or withdrawn.")
    ] = None,
    prefix: Annotated[str | None, option("--prefix", "Units", "TEXT", "Those whose names begin so.")] = None,
    limit: Annotated[int, option("--limit", "Output", "N", "Most units to print.", parser=COUNT)] = 50,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Print the units in a state, or whose names begin with a text; nothing is written."""
    output = output_format(as_json, as_csv)
    named = {"waiting": waiting, "overdue": overdue, "held": held}
    states = [word for word, given in named.items() if given] + ([] if state is None else [state])
    if len(states) > 1:
        raise InvalidInput(f"give one state; got {' and '.join(states)}")
    checks.whole_number("limit", limit, 1)
    experiment = open_experiment(store, name, key)
    found: list[UnitStatus] = []
    after: str | None = None
    while len(found) < limit:
        size = min(limit - len(found), MOST_LISTED)
        page = experiment.units(states[0] if states else None, prefix=prefix, limit=size, after=after)
        found += page.units
        after = page.next
        if after is None:
            break
    _print_units(found, output)
    if after is not None and output == "table":
        note(f"these are the first {len(found):,}; there may be more: --limit")


def _print_units(found: "list[UnitStatus]", output: "Format") -> None:
    from equipoise.terminal import print_csv, print_table

    data = [one.to_dict() for one in found]
    if output == "json":
        for one in data:
            print(json.dumps(one))
    elif output == "csv":
        columns = [field.name for field in dataclasses.fields(UnitStatus)]
        print_csv(columns, [[_cell(one[column]) for column in columns] for one in data])
    else:
        print_table(
            [
                ("unit", [one.unit for one in found]),
                ("arm", [one.arm for one in found]),
                ("state", [one.state for one in found]),
                ("reward", ["" if one.reward is None else f"{one.reward:g}" for one in found]),
                ("assigned", [f"{one.at:%Y-%m-%d %H:%M:%S}" for one in found]),
                ("probability", [f"{one.probability:.4g}" for one in found]),
            ],
            always=4,
            words=("arm", "state", "assigned"),
        )


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


GROUP = 500
"""Units per transaction: more would not be faster, and would make other writers wait."""
_NOT_ABOUT_A_ROW = (StoreError, NotAllowed, NotAuthenticated, ServiceError)


def feed(
    read: "UnitFile",
    send: "Callable[[Sequence[Row]], list[Any]]",
    receive: Callable[[Any], None],
    *,
    noun: str,
    show: bool,
    keep_going: bool,
    hint: "Callable[[Row, EquipoiseError], str | None] | None" = None,
) -> None:
    """Send rows in groups, and pass each group's results to `receive` once they are durable.

    A group is recorded whole or not at all. If something in it is refused, its rows are sent one by one up to the first
    that is refused, which is reported with its line; with `keep_going` the others are sent as well. Rows
    with wrong cells are reported too and not sent.
    """
    from equipoise.progress import StepBar

    rows, source = read.rows, read.source
    n_done, refused = 0, len({one.line for one in read.wrong})
    for one in read.wrong:
        note(f"refused: {visible(f'{source}, {one}')}")
    bar = StepBar(len(rows), f"sending {noun}", noun=noun) if show else None

    def send_singly(group: "Sequence[Row]") -> None:
        nonlocal n_done, refused
        for row in group:
            try:
                (answer,) = send([row])
            except _NOT_ABOUT_A_ROW:
                raise
            except EquipoiseError as error:
                wrong = EquipoiseError(
                    f"{source}, line {row.line}: {error.message}", hint=hint(row, error) if hint else error.hint
                )
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
        n_lines = len(rows) + len({one.line for one in read.wrong})
        raise EquipoiseError(f"{refused:,} of {n_lines:,} {noun} of {source} were refused; the others are recorded")


def _so_far(n_done: int, n_rows: int, noun: str) -> str:
    return f"{n_done:,} of {n_rows:,} {noun} are recorded"
