"""The command `plan`: what each way to assign people costs, before anybody is assigned."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.exit_codes import INTERRUPTED
from equipoise.cli.options import AsCsv, AsJson, ChartFile, Quiet, check_chart, option, output_format, save_chart
from equipoise.cli.stores import DEFAULT_STORE, Key, StoreUrl, note, open_experiment
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.planner import Plan
    from equipoise.planner.forecast import Forecast

_QUICK_SECONDS = 2.0


def plan(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="PLAN.toml", help="The plan; or give --rates or --means.", show_default=False),
    ] = None,
    rates: Annotated[
        str | None, option("--rates", "Arms", "10%,12%", "Yes/no rewards: a rate per arm, or ranges as 10% to 14%.")
    ] = None,
    means: Annotated[str | None, option("--means", "Arms", "5,6", "Other rewards: a mean per arm, or ranges.")] = None,
    stds: Annotated[str | None, option("--stds", "Arms", "2", "Their standard deviation: one, or one per arm.")] = None,
    names: Annotated[str | None, option("--names", "Arms", "A,B,C", "Names of the arms.")] = None,
    control: Annotated[str | None, option("--control", "Arms", "ARM", "The arm that others are compared with.")] = None,
    reward_range: Annotated[
        str | None, option("--range", "Arms", "LOW,HIGH", "Lowest and highest reward, or inf; yes/no need none.")
    ] = None,
    minimise: Annotated[bool, option("--minimise", "Arms", None, "Small rewards are good.")] = False,
    people: Annotated[str | None, option("--people", "People", "N", "How many people at most.")] = None,
    per_day: Annotated[
        str | None, option("--per-day", "People", "N", "How many a day, or a range as '80 to 120'.")
    ] = None,
    start: Annotated[str | None, option("--start", "People", "DATE", "The first day, as 2027-03-01.")] = None,
    until: Annotated[str | None, option("--until", "People", "DATE", "The last day.")] = None,
    days: Annotated[str | None, option("--days", "People", "N", "Instead: for how many days.")] = None,
    delay: Annotated[
        str | None,
        option("--delay", "Rewards", "TIME", "Until a reward is known: 2 days; or median and 9 in 10: 8h,2d."),
    ] = None,
    missing: Annotated[
        str | None, option("--missing", "Rewards", "X", "Share of people without a reward, as 5%.")
    ] = None,
    window: Annotated[
        str | None, option("--window", "Rewards", "TIME", "How long a reward is waited for, as 10 days.")
    ] = None,
    rule: Annotated[
        str | None,
        option("--rule", "Rewards", "RULE", "After the window: drop (the default), default (count a value) or wait."),
    ] = None,
    value: Annotated[
        float | None, option("--default", "Rewards", "X", "The value that the rule default counts.")
    ] = None,
    hold: Annotated[bool, option("--hold", "Rewards", None, "Count no reward before the window has passed.")] = False,
    late: Annotated[
        str | None, option("--late", "Rewards", "WHAT", "Rewards after the window: count or ignore.")
    ] = None,
    precision: Annotated[
        str | None, option("--precision", "Goals", "X", "Every arm known to within X, at all times together.")
    ] = None,
    margin: Annotated[
        str | None, option("--margin", "Goals", "X", "The best arm known to within X; 0 for exactly.")
    ] = None,
    by: Annotated[str | None, option("--by", "Goals", "P", "With which probability; 80% by default.")] = None,
    weights: Annotated[str | None, option("--weights", "Ways", "W,W", "Compare these weights.")] = None,
    information_kept: Annotated[
        str | None, option("--information-kept", "Ways", "Q,Q", "Compare these shares of the information kept.")
    ] = None,
    floor: Annotated[str | None, option("--floor", "Ways", "X", "Smallest share of every arm.")] = None,
    control_share: Annotated[str | None, option("--control-share", "Ways", "X", "Share kept for the control.")] = None,
    scenario: Annotated[
        str | None,
        option("--scenario", "Ways", "NAME", "What if: no difference, half the differences, another arm is best, ..."),
    ] = None,
    from_experiment: Annotated[
        str | None,
        option("--from-experiment", "From what is there", "NAME", "Plan again from what an experiment measured."),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    formula: Annotated[bool, option("--formula", "Work", None, "At once, by formula: before the cost of learning.")] = (
        False
    ),
    quick: Annotated[bool, option("--quick", "Work", None, "Simulate for some two seconds.")] = False,
    seconds: Annotated[
        float | None, option("--seconds", "Work", "S", "Simulate at most so long; 60 by default.")
    ] = None,
    replications: Annotated[
        int | None, option("--replications", "Work", "N", "Simulate exactly this number of experiments of each way.")
    ] = None,
    workers: Annotated[int | None, option("--workers", "Work", "N", "Threads; one per processor by default.")] = None,
    backend: Annotated[
        str | None, option("--backend", "Work", "NAME", "threads (default), processes, ray or dask.")
    ] = None,
    scheduler: Annotated[
        str | None, option("--scheduler", "Work", "ADDRESS", "Address of the ray or dask cluster.")
    ] = None,
    page: Annotated[
        Path | None,
        option("--page", "Output", "FILE.html", "Write everything as one page with charts, to send around."),
    ] = None,
    chart: ChartFile = None,
    as_toml: Annotated[
        bool, option("--toml", "Output", None, "Print the plan as a file, and simulate nothing.")
    ] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    quiet: Quiet = False,
) -> None:
    """Plan an experiment: what each way to assign people costs in days, and what people get for it."""
    options = {
        "rates": rates,
        "means": means,
        "stds": stds,
        "names": names,
        "control": control,
        "reward_range": _range(reward_range),
        "direction": "minimise" if minimise else None,
        "people": people,
        "per_day": per_day,
        "start": start,
        "until": until,
        "days": days,
        "delay": delay,
        "missing": missing,
        "rule": rule,
        "value": value,
        "window": window,
        "hold": hold or None,
        "late": late,
        "precision": precision,
        "margin": margin,
        "by": by,
        "weights": weights,
        "information_kept": information_kept,
        "floor": floor,
        "control_share": control_share,
    }
    given = {name: value for name, value in options.items() if value is not None}
    form = output_format(as_json, as_csv)
    check_chart(chart)
    _check_page(page)
    found = _plan(file, given, from_experiment, store, key)
    if scenario is not None:
        found = found.scenario(scenario)
    if as_toml:
        print(found.to_toml(), end="")
        return
    work = {"seconds": _QUICK_SECONDS if quick and seconds is None else seconds, "replications": replications}
    where = {"workers": workers, "backend": backend or "threads", "scheduler": scheduler}
    forecast = _forecast(found, formula, quiet, work | where)
    _print(forecast, form)
    if from_experiment is not None and not quiet:
        note("this is about further people alone; equipoise prices counts those assigned so far")
    if chart is not None:
        from equipoise.charts import forecast_chart

        save_chart(forecast_chart(forecast), chart)
    if page is not None:
        from equipoise.forecast_page import write_forecast_page

        write_forecast_page(forecast, page)
        note(f"page written to {page}")
    if forecast.interrupted:
        raise typer.Exit(INTERRUPTED)


def _plan(file: Path | None, given: dict[str, Any], from_experiment: str | None, store: str, key: str | None) -> "Plan":
    """Return the plan of options; or that of a file or an experiment, in which options replace what it says."""
    from equipoise.planner import Plan, plan_from_options, plan_with_options, read_plan

    sources = [name for name, is_given in (("PLAN.toml", file), ("--from-experiment", from_experiment)) if is_given]
    if len(sources) > 1:
        raise InvalidInput("give a PLAN.toml or --from-experiment; got both")
    if file is None and from_experiment is None:
        if not given:
            raise InvalidInput(
                "there is nothing to plan",
                hint="give a PLAN.toml, or options such as --rates 10%,12%,14% --people 3000 --precision 0.05",
            )
        return plan_from_options(**given | _rule(given, None))
    if file is not None:
        found = read_plan(file)
    else:
        found = Plan.from_experiment(open_experiment(store, str(from_experiment), key))
    return plan_with_options(found, **given | _rule(given, found))


def _rule(given: dict[str, Any], plan: "Plan | None") -> dict[str, Any]:
    """Return the rule for missing rewards, if the options mean one that they do not name."""
    from equipoise.planner.plan_options import rule_of_options

    rule = rule_of_options(given, plan)
    return {} if rule is None else {"rule": rule}


def _forecast(plan: "Plan", formula: bool, quiet: bool, settings: dict[str, Any]) -> "Forecast":
    """Simulate, with a bar on a terminal; Ctrl-C keeps what is done."""
    from equipoise.terminal import announce_compiling

    announce_compiling(quiet=quiet)
    if formula:
        from equipoise.planner.formulas import forecast_by_formula

        return forecast_by_formula(plan)
    from equipoise.planner.refinement import simulate

    try:
        found = simulate(plan, progress=not quiet, **settings)
    except KeyboardInterrupt:
        note("interrupted before the first simulated experiment was finished")
        raise typer.Exit(INTERRUPTED) from None
    if found.interrupted:
        note(f"interrupted; this is what {found.replications:,} simulated experiments of each way say")
    return found


def _print(forecast: "Forecast", form: str) -> None:
    from equipoise import terminal
    from equipoise.forecast_table import forecast_lines
    from equipoise.status_table import print_lines

    if form == "json":
        terminal.print_json(forecast.to_dict())
    elif form == "csv":
        rows = forecast.table()
        terminal.print_csv(list(rows[0]), [list(row.values()) for row in rows])
    else:
        print_lines(forecast_lines(forecast))


def _range(text: str | None) -> tuple[float | None, float | None] | None:
    if text is None:
        return None
    from equipoise.arm_tables import numbers

    ends = numbers("range", text)
    if len(ends) != 2:
        raise InvalidInput.of("range", "must be a lowest and a highest reward, as 0,100 or 0,inf", text)
    return ends[0], ends[1]


def _check_page(page: Path | None) -> None:
    """Raise before any computation if the page could not be drawn or written."""
    if page is None:
        return
    if page.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput.of("page", "must end in .html", str(page))
    check_chart(page)
