"""The command that prices the positions of an experiment's dial."""

from typing import TYPE_CHECKING, Annotated

from equipoise.cli.options import AsCsv, AsJson, option, output_format
from equipoise.cli.stores import DEFAULT_STORE, ExperimentName, Key, StoreUrl, open_experiment
from equipoise.experiment.dial import ABOUT_WORDS

if TYPE_CHECKING:
    from equipoise.experiment.records import DialPosition, Prices

_EVERY = 5
"""Of the positions without a name, one of this number is printed."""


def prices(
    name: ExperimentName,
    all_positions: Annotated[bool, option("--all", "Dial", None, "Print every position, not every fifth.")] = False,
    people_per_day: Annotated[
        float | None,
        option("--people-per-day", "Dial", "N", "The pace that days are computed by; that of the last week."),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show what each position of the dial gives people and costs, with ranges; nothing is changed."""
    form = output_format(as_json, as_csv)
    found = open_experiment(store, name, key).prices(people_per_day=people_per_day)
    from equipoise import terminal

    if form == "json":
        terminal.print_json(found.to_dict())
    elif found.needs:
        print(f"{found.name}: no prices yet; it {found.needs}")
    elif form == "csv":
        rows = [_figures(found, k) for k in range(len(found.positions))]
        terminal.print_csv(rows[0], [list(row.values()) for row in rows])
    else:
        _print_prices(found, all_positions)


def _figures(found: "Prices", k: int) -> dict[str, object]:
    """Return the figures of a position as a flat row."""
    one = found.positions[k]
    row: dict[str, object] = {
        "position": k,
        "name": ", ".join(_names(found, k)),
        "reward_weight": one.reward_weight,
        "information_kept": one.information_kept,
    }
    row |= {f"share of {arm}": share for arm, share in zip(found.arms, one.shares, strict=True)}
    for name, gain in (("gain", one.gain), ("gain_over_equal_shares", one.gain_over_equal_shares)):
        row |= {f"{name}_per_100": gain.per_100, f"{name}_low": gain.low, f"{name}_high": gain.high}
    row |= {name: getattr(one, name) for name in ("people_ratio", "people_ratio_to_equal_shares", "error_ratio")}
    for reached in one.precisions:
        goal = f"{reached.rule} {reached.half_width:g}"
        row |= {f"people until {goal}": reached.people, f"days until {goal}": reached.days}
    return row


def _names(found: "Prices", k: int) -> list[str]:
    named = [preset.name for preset in found.presets if preset.position == k]
    return ["now", *named] if k == found.present else named


def _print_prices(found: "Prices", all_positions: bool) -> None:
    """Print one row per position, and below what the columns mean."""
    from equipoise.terminal import aligned, aligned_or_blank, print_table

    last = len(found.positions) - 1
    shown = [
        k for k in range(len(found.positions)) if all_positions or k % _EVERY == 0 or k == last or _names(found, k)
    ]
    rows = [found.positions[k] for k in shown]
    best = found.arms.index(str(found.best))
    ends = [(one.gain.low, one.gain.per_100, one.gain.high) for one in rows]
    texts = aligned([number for row in ends for number in row], digits=3)
    gains = [texts[3 * k : 3 * k + 3] for k in range(len(rows))]
    columns = [
        ("dial", [_dial_text(one) for one in rows]),
        (f"get {found.best}", [f"{one.next_100[best]} of 100" for one in rows]),
        ("per 100", [_signed(middle) for _, middle, _ in gains]),
        ("8 in 10", [f"{_signed(low)} to {_signed(high)}" for low, _, high in gains]),
        ("people", [_times(one.people_ratio) for one in rows]),
        ("error", [_times(one.error_ratio) for one in rows]),
    ]
    for j, goal in enumerate(rows[0].precisions):
        head = "+/- " * (goal.rule == "precision") + "differences " * (goal.rule != "precision")
        reached = [one.precisions[j] for one in rows]
        people = ["never" if one.people is None else f"{one.people:,}" for one in reached]
        columns.append((f"{head}{goal.half_width:g}", people))
        if found.people_per_day is not None:
            columns.append(("days", aligned_or_blank([one.days for one in reached])))
    columns.append(("", [", ".join(_names(found, k)) for k in shown]))
    print_table(columns, words=("",))
    every = "how many times as many it takes until every arm is known as well as now"
    print("\nper 100: what 100 people gain compared with now; in 8 of 10 cases in the range")
    print("  (differences between arms are taken as smaller than measured: part is luck)")
    print(f"people: {every}")
    if rows[0].precisions:
        print(
            "+/-: further people until that precision, with those so far"
            + ", at the stated pace" * (found.people_per_day is not None)
        )
    if found.information_about != "average":
        print(f"the dial keeps information about {ABOUT_WORDS[found.information_about]}")


def _dial_text(position: "DialPosition") -> str:
    if "information_kept" in position.dial:
        return f"{100 * position.dial['information_kept']:.4g}%"
    return f"{position.dial['reward_weight']:g}"


def _signed(text: str) -> str:
    return text if text.startswith("-") or not float(text) else f"+{text}"


def _times(ratio: float | None) -> str:
    return "never" if ratio is None else f"x {ratio:.2f}"
