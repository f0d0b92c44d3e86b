"""Print results of the commands: tables for people, JSON or CSV for programs, and messages on stderr."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rich.cells import cell_len

from equipoise._types import FloatArray
from equipoise.serialization import json_data
from equipoise.text_layout import padded

if TYPE_CHECKING:
    from equipoise.arm_tables import ArmTable
    from equipoise.charts import AllocationRecord
    from equipoise.pareto import Frontier
    from equipoise.simulation.runs import SummaryRow
    from equipoise.simulation.study import Study

Format: TypeAlias = Literal["table", "json", "csv"]
COMPILING = "compiling, once: the next start will be quick"
"""Message shown when compiled code is not in the cache yet."""


def print_allocation(record: AllocationRecord, format: Format) -> None:  # noqa: A002
    """Print the share of each arm, and the reward and error of the allocation."""
    columns: dict[str, list[Any]] = {
        "arm": list(record.arms),
        "mean": record.mean.tolist(),
        "std": record.std.tolist(),
        "share": record.share.tolist(),
    }
    if record.pulls is not None:
        columns["pulls"] = record.pulls.tolist()
    if record.half_width is not None:
        columns["half_width"] = [None if math.isnan(width) else width for width in record.half_width.tolist()]
    rows = list(zip(*columns.values(), strict=True))
    if format == "csv":
        print_csv(columns, rows)
    elif format == "json":
        names = ("reward_weight", "reward", "error", "tradeoff", "information_kept", "information_about")
        worth = {name: getattr(record, name) for name in names}
        worth["units_needed"] = 1 / record.information_kept if record.information_kept > 0 else math.inf
        if record.horizon is not None:
            after = ("horizon", "error_at_horizon", "widest_half_width", "failure_probability", "reward_range")
            worth |= {name: getattr(record, name) for name in after}
        print_json(worth | {"arms": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        shown = [("arm", list(record.arms)), ("mean", aligned(record.mean)), ("std", aligned(record.std))]
        shown.append(("share", _shares(record.share)))
        if record.pulls is not None:
            shown.append(("people", [str(pulls) for pulls in record.pulls]))
        if record.half_width is not None:
            shown.append(("+/-", aligned_or_blank(record.half_width.tolist())))
        print_table(shown)
        _write("\n")
        worth = {"reward weight": record.reward_weight, "reward": record.reward, "error": record.error}
        worth["trade-off"] = record.tradeoff
        if record.is_kept:
            worth["information kept"], worth["units needed"] = record.information_kept, 1 / record.information_kept
        worth = {name: value for name, value in worth.items() if value is not None}
        if record.horizon is not None:
            worth[f"error after {record.horizon} people"] = record.error_at_horizon
            widest = record.widest_half_width
            if widest is not None:
                worth["widest +/- in status"] = float(f"{widest:.3g}")
        width = max(map(len, worth))
        _write("".join(f"{name:{width}}  {aligned([value], digits=6)[0]}\n" for name, value in worth.items()))


def print_frontier(arms: ArmTable, curve: Frontier, format: Format) -> None:  # noqa: A002
    """Print reward, error, trade-off, information kept, units needed and shares at each weight."""
    measures = ("reward_weight", "reward", "error", "tradeoff", "information_kept", "units_needed")
    values = [getattr(curve, name).tolist() for name in measures]
    if format == "csv":
        shares = curve.allocation.T.tolist()
        print_csv([*measures, *(f"share_{name}" for name in arms.arms)], zip(*values, *shares, strict=True))
    elif format == "json":
        points = [
            dict(zip(measures, row, strict=True)) | {"allocation": allocation}
            for *row, allocation in zip(*values, curve.allocation.tolist(), strict=True)
        ]
        known = zip(arms.arms, arms.mean, arms.std, strict=True)
        print_json({"arms": [{"arm": arm, "mean": mean, "std": std} for arm, mean, std in known], "points": points})
    else:
        heads = ("weight", "reward", "error", "trade-off", "kept", "units")
        texts = [*map(aligned, values[:4]), [f"{kept:.3f}" for kept in values[4]], [f"{n:.2f}" for n in values[5]]]
        shown = list(zip(heads, texts, strict=True))
        shares = _shares(curve.allocation.ravel())
        for place, name in enumerate(arms.arms):
            shown.append((f"arm {name}" if name.isdigit() else name, shares[place :: len(arms.arms)]))
        missing = len(shown) - print_table(shown, always=len(heads))
        if missing:
            _write(f"\n{missing} of {len(arms.arms)} arms do not fit the width; --json and --csv have them all\n")


def print_sweep(rows: Sequence[SummaryRow], format: Format) -> None:  # noqa: A002
    """Print how each policy did at each horizon."""
    measures = tuple(name for name in rows[0]._fields if name != "policy")
    if format == "json":
        print_json(
            {"rows": [{"policy": row.policy.to_dict()} | dict(zip(measures, row[1:], strict=True)) for row in rows]}
        )
    elif format == "csv":
        print_csv(["policy", *measures], [[repr(row.policy), *row[1:]] for row in rows])
    else:
        shown: list[tuple[str, Sequence[str]]] = [("policy", [type(row.policy).__name__ for row in rows])]
        shown += _parameter_columns(rows)
        shown.append(("horizon", [str(row.horizon) for row in rows]))
        shown += [
            ("reward", aligned(row.reward for row in rows)),
            ("error", aligned(row.error for row in rows)),
            ("realised", aligned(row.realised_error for row in rows)),
        ]
        if any(row.reward_weight is not None for row in rows):
            shown.append(("weight", ["" if row.reward_weight is None else f"{row.reward_weight:g}" for row in rows]))
            regret, spread = _regrets(rows)
            shown += [("regret", regret), ("+/-", spread)]
        if any(row.error_excess is not None for row in rows):
            shown.append(("shortfall", _numbers_or_blanks([row.rescaled_shortfall for row in rows])))
            excess = [None if row.error_excess is None else 100 * row.error_excess for row in rows]
            shown.append(("excess", [f"{text}%" if text else "" for text in _numbers_or_blanks(excess)]))
        print_table(shown)
        count = rows[0].replications
        _write(f"\nmeans over {counted(count, 'replication')}")
        _write("; error by formula, and as it came out (realised)")
        if any(name == "+/-" for name, _ in shown):
            _write("\nregret times sqrt(horizon), +/- its standard error")
        if shown[-1][0] == "excess":
            _write("\ninformation kept: shortfall of reward times sqrt(horizon), and excess of error over its limit")
        _write("\n")


def _numbers_or_blanks(values: Sequence[float | None]) -> list[str]:
    """Format numbers with two decimals; None is blank."""
    return ["" if value is None else f"{value:.2f}" for value in values]


def _parameter_columns(rows: Sequence[SummaryRow]) -> list[tuple[str, Sequence[str]]]:
    """Return a column for each parameter with a value other than its default; no weight column if regret uses it."""
    policies: list[Any] = [row.policy for row in rows]
    fields = {field.name: field.default for policy in policies for field in dataclasses.fields(policy)}
    set_in = [policy.to_dict() for policy in policies]  # without the dials that are not used
    columns = {
        name: [getattr(policy, name) if name in known else None for policy, known in zip(policies, set_in, strict=True)]
        for name in fields
    }
    weights = columns.get("reward_weight", [])
    if all(own in (None, row.reward_weight) for own, row in zip(weights, rows, strict=bool(weights))):
        columns.pop("reward_weight", None)
    return [
        (name, ["" if value is None else _short(value) for value in values])
        for name, values in columns.items()
        if any(value not in (None, fields[name]) for value in values)
    ]


_MANY = 6
"""Most numbers of one parameter that fit into a table."""
_LARGE = 1e6
"""Larger regrets are written with an exponent."""


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        shown = [f"{part:.4g}" for part in value]
        return ",".join(shown) if len(shown) <= _MANY else ",".join([*shown[: _MANY - 2], "...", shown[-1]])
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _regrets(rows: Sequence[SummaryRow]) -> tuple[list[str], list[str]]:
    """Format regrets and their standard errors with the same number of decimals: two digits of the smallest error."""
    pairs = [(row.rescaled_regret, row.standard_error) for row in rows]
    # A standard error at rounding level only means that all replications were alike.
    errors = [
        spread for regret, spread in pairs if spread and math.isfinite(spread) and spread > 1e-9 * abs(regret or 0)
    ]
    decimals = min(4, max(1, 1 - math.floor(math.log10(min(errors))))) if errors else 4

    def text(value: float | None) -> str:
        if value is None:
            return ""
        return f"{value:.4e}" if _LARGE <= abs(value) < math.inf else f"{value:.{decimals}f}"

    return [text(regret) for regret, _ in pairs], [text(spread) for _, spread in pairs]


@contextmanager
def sweep_notes(study: Study, out: Path, *, quiet: bool, again: bool) -> Iterator[Callable[[int, int], None]]:
    """Report a sweep on stderr: its size, how long it took and where the results are, or how to resume it.

    Yields a function to call with the number of replications found in the file, and the number of all.
    """
    from equipoise.simulation import simulate
    from equipoise.simulation.sweeps import SweepInterrupted, result_paths

    def say(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr, flush=True)

    counts = (
        (len(study.policies), "policy", "policies"),
        (len(study.horizons), "horizon", "horizons"),
        (study.replications, "replication", "replications"),
    )
    sizes = " x ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in counts)
    say(f"{sizes} on {study.arms.n_arms:,} arms: {study.n_steps:,} steps")
    started = time.perf_counter()
    nothing_to_play = False

    def tell_found(n_found: int, n_replications: int) -> None:
        nonlocal nothing_to_play
        nothing_to_play = n_found == n_replications
        if 0 < n_found < n_replications:
            say(f"{n_found:,} of {n_replications:,} replications are finished already; playing the rest")

    try:
        announce_compiling(quiet=quiet)
        simulate(study.policies, study.arms, horizon=1)  # warm-up: workers find everything compiled
        yield tell_found
    except SweepInterrupted as interrupted:
        if interrupted.n_finished:
            finished = f"{interrupted.n_finished:,} of {interrupted.n_replications:,} replications are finished"
            # With --again, the same command would discard what was just saved.
            command = "the same command without --again" if again else "the same command"
            say(f"interrupted; {finished} and kept in {interrupted.kept}\n{command} plays the rest")
        else:
            say("interrupted before the first replication was finished")
        raise
    except KeyboardInterrupt:
        say("interrupted before the first step")
        raise
    written = ", ".join(map(str, result_paths(study, out)))
    before = "all replications were finished already; " if nothing_to_play else ""
    say(f"{before}results in {written} ({time.perf_counter() - started:.1f} s)")


def print_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object at full precision; infinite and undefined numbers become null."""
    _write(json.dumps(json_data(data), indent=2, allow_nan=False) + "\n")


def print_csv(header: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a header and rows as CSV at full precision."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    _write(buffer.getvalue())


def print_table(
    columns: Sequence[tuple[str, Sequence[str]]], *, always: int | None = None, words: Collection[str] = ()
) -> int:
    """Print columns of text, the first and `words` left-aligned and the others right; return how many were shown.

    Columns after the first `always` are left out if they do not fit the width of the terminal. The layout is done here
    because Rich takes half a minute for 100,000 arms, which the solver handles in a tenth of a second.
    """
    room = shutil.get_terminal_size().columns
    shown: list[list[str]] = []
    used = 0
    for head, cells in columns:
        column = padded([_printable(text) for text in (head, *cells)], left=not shown or head in words)
        used += cell_len(column[0]) + 2
        if always is not None and len(shown) >= always and used - 2 > room:
            break
        shown.append(column)
    _write("".join("  ".join(row).rstrip() + "\n" for row in zip(*shown, strict=True)))
    return len(shown)


def aligned(values: Iterable[float], digits: int = 5) -> list[str]:
    """Format a column of numbers with equally many decimals: `digits` digits of the largest, no trailing zeros.

    Examples
    --------
    >>> aligned([1, 1.5, 2]), aligned([1e9 + 1, 1e9]), aligned([0.25, 1e-9]), aligned([float("inf"), 2])
    (['1.0', '1.5', '2.0'], ['1000000001', '1000000000'], ['0.25', '1.0e-09'], ['inf', '2'])
    """
    numbers = [float(value) for value in values]
    largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0.0)
    if largest >= 1e15:  # beyond the integers that a double holds exactly
        return [f"{number:.{digits}g}" for number in numbers]
    most = max(0, digits - 1 - math.floor(math.log10(largest))) if largest else 0
    rounded = [f"{number:.{most}f}" for number in numbers]
    decimals = max((len(text.rstrip("0").partition(".")[2]) for text in rounded), default=0)
    # Write non-zero numbers that would show as zero with an exponent.
    return [
        f"{number:.1e}" if number != 0 == float(text) else f"{number:.{decimals}f}"
        for number, text in zip(numbers, rounded, strict=True)
    ]


def aligned_or_blank(values: Sequence[float | None]) -> list[str]:
    """Format half-widths with three digits of the largest; blank where there is none.

    Examples
    --------
    >>> aligned_or_blank([0.04021, None, 0.1])
    ['0.040', '', '0.100']
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    decimals = max(0, 2 - math.floor(math.log10(max(known)))) if any(known) else 0
    return ["" if value is None or not math.isfinite(value) else f"{value:.{decimals}f}" for value in values]


def _shares(values: FloatArray) -> list[str]:
    """Format shares with four decimals, or more if all are small."""
    return aligned(values, digits=5 if values.max() == 1 else 4)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if needed.

    Examples
    --------
    >>> counted(1, "event"), counted(1_000, "event")
    ('1 event', '1,000 events')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


@cache
def announce_compiling(*, quiet: bool = False) -> None:
    """Say on stderr if code has to be compiled, which happens once and takes seconds."""
    from equipoise.kernels.compiler import when_compiling

    if not quiet:
        when_compiling(lambda: print(COMPILING, file=sys.stderr, flush=True))


def _printable(text: str) -> str:
    """Replace characters that move a terminal's cursor or change its colours."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
