"""Commands that work without a live experiment: allocate, frontier, simulate and reproduce."""

import atexit
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.exit_codes import FAILURE, INTERRUPTED
from equipoise.cli.options import (
    COUNT,
    FRACTION,
    ArmsFile,
    AsCsv,
    AsJson,
    ChartFile,
    Floor,
    HalfWidth,
    InformationAbout,
    InformationKept,
    Mean,
    Name,
    Quiet,
    Rates,
    SmallestDifference,
    Std,
    Units,
    check_chart,
    floor_shares,
    option,
    output_format,
    range_ends,
    save_chart,
)
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.arm_tables import ArmTable
    from equipoise.arms import Gaussian
    from equipoise.paper import reproduction
    from equipoise.simulation.study import Study


def allocate(
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    rates: Rates = None,
    name: Name = None,
    reward_weight: Annotated[
        float | None,
        option("--reward-weight", "Goal", "W", "The dial: 0 is accuracy only, 1 reward only.", parser=FRACTION),
    ] = None,
    error: Annotated[
        float | None, option("--error", "Goal", "X", "Instead of a weight: the most reward at this error.")
    ] = None,
    reward: Annotated[
        float | None, option("--reward", "Goal", "X", "Instead of a weight: the least error at this reward.")
    ] = None,
    information_kept: InformationKept = None,
    information_about: InformationAbout = None,
    smallest_difference: SmallestDifference = None,
    half_width: HalfWidth = None,
    units: Units = None,
    floor: Floor = "0",
    horizon: Annotated[
        int | None,
        option(
            "--horizon", "People", "N", "Divide N people, and predict the +/- of status.", parser=COUNT, also="--people"
        ),
    ] = None,
    reward_range: Annotated[
        str | None,
        option("--range", "People", "LOW,HIGH", "The range that the experiment will declare; 0,1 with --rates."),
    ] = None,
    failure_probability: Annotated[
        float | None,
        option(
            "--failure-probability",
            "People",
            "P",
            "One minus the confidence of the +/- of all arms; 5% by default.",
            parser=FRACTION,
        ),
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    chart: ChartFile = None,
) -> None:
    """Print the best share of pulls for each arm, when means and spreads are known or guessed."""
    from equipoise import arm_tables, charts, terminal

    output = output_format(as_json, as_csv)
    check_chart(chart)
    goals = {"reward_weight": reward_weight, "error": error, "reward": reward}
    goals |= {"information_kept": information_kept, "half_width": half_width}
    details = {"information_about": information_about, "smallest_difference": smallest_difference, "units": units}
    goal, lowest = _goal(goals, details), floor_shares(floor)
    declared = None if reward_range is None else range_ends(reward_range)
    for option_name, value in (("reward_range", reward_range), ("failure_probability", failure_probability)):
        if value is not None and horizon is None:
            raise InvalidInput.of(option_name, "goes with --horizon", value)
    known = arm_tables.chosen_arms(arms, mean, std, name, rates)
    terminal.announce_compiling()
    dial = _dial(known, lowest, *goal, {name: value for name, value in details.items() if value is not None})
    intervals: dict[str, Any] = {"reward_range": declared or ((0.0, 1.0) if known.are_rates else None)}
    if failure_probability is not None:
        intervals["failure_probability"] = failure_probability
    record = charts.allocation_record(
        known.mean, known.std, **dial, floor=lowest, horizon=horizon, arms=known.arms, **intervals
    )
    if chart is not None:
        save_chart(charts.allocation_chart(record), chart)
    terminal.print_allocation(record, output)


_DETAILS = {
    "information_about": ("information_kept", "half_width"),
    "smallest_difference": ("information_kept",),
    "units": ("half_width",),
}
"""With which goals a detail goes."""


def _goal(goals: dict[str, float | None], details: dict[str, Any]) -> tuple[str, float]:
    """Return the name and value of the one goal that was given; raise if a detail of another was."""
    given = [(name, value) for name, value in goals.items() if value is not None]
    if len(given) != 1:
        *some, last = map(_as_option, goals)
        got = " and ".join(_as_option(name) for name, _ in given) or "none"
        raise InvalidInput(f"give exactly one of {', '.join(some)} and {last}; got {got}")
    for name, value in details.items():
        if value is not None and given[0][0] not in _DETAILS[name]:
            raise InvalidInput.of(name, f"goes with {' and '.join(map(_as_option, _DETAILS[name]))}", value)
    if given[0][0] == "half_width" and details["units"] is None:
        raise InvalidInput("--units is missing: after how many units is --half-width to be reached?")
    return given[0]


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _dial(
    known: "ArmTable", floor: float | tuple[float, ...], goal: str, value: float, details: dict[str, Any]
) -> dict[str, Any]:
    """Return the dial that meets the goal: a reward weight, or information to keep."""
    from equipoise.information import information_for_half_width
    from equipoise.pareto import weight_for_error, weight_for_reward

    if goal == "error":
        return {"reward_weight": weight_for_error(known.mean, known.std, error=value, floor=floor)}
    if goal == "reward":
        return {"reward_weight": weight_for_reward(known.mean, known.std, reward=value, floor=floor)}
    if goal == "half_width":
        about, units = details.get("information_about", "every-arm"), details["units"]
        if about == "best-arm":
            raise InvalidInput.of("information_about", "must be every-arm or average for --half-width", about)
        kept = information_for_half_width(known.std, half_width=value, units=units, about=about, floor=floor)
        return {"information_kept": kept, "information_about": about}
    return {goal: value} | details


def frontier(
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    rates: Rates = None,
    name: Name = None,
    reward_weights: Annotated[
        str | None, option("--weights", "Goal", "0,0.5,1", "Reward weights to solve for.")
    ] = None,
    points: Annotated[
        int | None, option("--points", "Goal", "N", "That many weights from 0 to 1; 11 by default.")
    ] = None,
    floor: Floor = "0",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    chart: ChartFile = None,
) -> None:
    """Print reward, error and shares of the best allocation for a range of reward weights."""
    from equipoise import arm_tables, charts, pareto, terminal

    output = output_format(as_json, as_csv)
    check_chart(chart)
    grid, lowest = _grid(reward_weights, points), floor_shares(floor)
    known = arm_tables.chosen_arms(arms, mean, std, name, rates)
    terminal.announce_compiling()
    curve = pareto.frontier(known.mean, known.std, reward_weights=grid, floor=lowest)
    if chart is not None:
        record = charts.frontier_record(known.mean, known.std, reward_weights=grid, floor=lowest, arms=known.arms)
        save_chart(charts.frontier_and_shares_chart(record), chart)
    terminal.print_frontier(known, curve, output)


def _grid(weights: str | None, points: int | None) -> tuple[float, ...]:
    """Return the given weights, or evenly spaced ones."""
    from equipoise.arm_tables import numbers

    if weights is not None and points is not None:
        raise InvalidInput("give --weights or --points; got both")
    if weights is not None:
        return numbers("reward_weights", weights, percent=True)
    n_points = 11 if points is None else points
    if n_points < 2:
        raise InvalidInput.of("points", "must be at least 2", n_points)
    return tuple(i / (n_points - 1) for i in range(n_points))


def simulate(
    study: Annotated[
        Path | None,
        typer.Argument(
            metavar="STUDY.toml", help="What to play, instead of --policy, --horizon and arms.", show_default=False
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        option("--policy", "Study", "NAME:x=1,y=[2,3]", "A policy and its parameters; lists are swept. Repeatable."),
    ] = None,
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    rates: Rates = None,
    reward_weight: Annotated[
        str | None,
        option("--reward-weight", "Study", "W,W", "Weights for policies that take one and have none of their own."),
    ] = None,
    information_kept: Annotated[
        str | None,
        option("--information-kept", "Study", "Q,Q", "Instead of weights, or beside them: shares of the information."),
    ] = None,
    information_about: Annotated[
        str | None,
        option("--information-about", "Study", "WHAT,WHAT", "Of --information-kept: average, every-arm or best-arm."),
    ] = None,
    forcing: Annotated[
        str | None, option("--forcing", "Study", "X,X", "Forcing for policies that take it and have none of their own.")
    ] = None,
    horizon: Annotated[
        str | None, option("--horizon", "Study", "N,N", "Pulls per replication; several are swept.")
    ] = None,
    replications: Annotated[
        int | None, option("--replications", "Study", "N", "How often each policy plays; 100 by default.", parser=COUNT)
    ] = None,
    seed: Annotated[
        int | None, option("--seed", "Study", "N", "The same seed gives the same rewards; 0 by default.")
    ] = None,
    checkpoints: Annotated[
        str | None, option("--checkpoints", "Study", "N,N", "Steps to record; about 40 on a log scale by default.")
    ] = None,
    report_weight: Annotated[
        float | None,
        option(
            "--report-weight",
            "Study",
            "W",
            "Weight of the regret in the table; each policy's own by default.",
            parser=FRACTION,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("--out", "Output", "FILE.npz", "Results, which the same command resumes; STUDY.npz by default."),
    ] = None,
    frame: Annotated[
        Path | None, option("--frame", "Output", "FILE", "Also write one row per record: .csv or .parquet.")
    ] = None,
    chart: ChartFile = None,
    again: Annotated[
        bool, option("--again", "Output", None, "Compute all again, and replace what the file holds.")
    ] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    quiet: Quiet = False,
    backend: Annotated[
        str | None, option("--backend", "Workers", "NAME", "threads (default), processes, ray or dask.")
    ] = None,
    workers: Annotated[
        int | None, option("--workers", "Workers", "N", "Threads or processes; one per processor by default.")
    ] = None,
    scheduler: Annotated[
        str | None, option("--scheduler", "Workers", "ADDRESS", "Address of the ray or dask cluster.")
    ] = None,
    chunk: Annotated[
        int | None, option("--chunk", "Workers", "N", "Replications per task; about a second's worth by default.")
    ] = None,
) -> None:
    """Play policies many times, here or on a cluster, and print how well they did."""
    from equipoise import arm_tables, checks, simulation, terminal

    output = output_format(as_json, as_csv)
    check_chart(chart)
    given = {
        "policies": [simulation.policy_from_text(text) for text in policies] if policies else None,
        "arms": _arms(arms, mean, std, rates),
        "reward_weight": None
        if reward_weight is None
        else list(arm_tables.numbers("reward_weight", reward_weight, percent=True)),
        "information_kept": None
        if information_kept is None
        else list(arm_tables.numbers("information_kept", information_kept, percent=True)),
        "information_about": None if information_about is None else information_about.split(","),
        "forcing": None if forcing is None else list(arm_tables.numbers("forcing", forcing)),
        "horizon": _steps("horizon", horizon),
        "checkpoints": _steps("checkpoints", checkpoints),
        "replications": replications,
        "seed": seed,
        "report": None
        if report_weight is None
        else {"reward_weight": checks.number_between("report_weight", report_weight, 0, 1)},
    }
    options = {key: value for key, value in given.items() if value is not None}  # under the names of a study file
    if study is None:
        _check_complete(options)
    known = simulation.study_from_dict(options) if study is None else simulation.read_study(study, **options)
    _warn_of_unused(options, known)
    # By default each study has its own file: a different study must not find the last one's results.
    file = out or Path(f"simulation-{known.short_name}.npz" if study is None else f"{study.stem}.npz")
    if frame is not None:
        simulation.checked_frame_path(frame)
    try:
        with terminal.sweep_notes(known, file, quiet=quiet, again=again) as tell_found:
            results = simulation.sweep(
                known,
                file,
                backend=backend,
                workers=workers,
                scheduler=scheduler,
                chunk=chunk,
                progress=not quiet,
                again=again,
                on_resume=tell_found,
            )
    except KeyboardInterrupt:
        # The garbage collection at exit would walk the 155,000 objects of numba and distributed, which takes longer
        # than the rest of the shutdown; it skips frozen objects.
        atexit.register(gc.freeze)
        raise typer.Exit(INTERRUPTED) from None
    if frame is not None:
        simulation.write_frame(results, frame)
    terminal.print_sweep(simulation.summary(results, report_weight=known.report_weight), output)
    if chart is not None:
        from equipoise.charts import curves_chart
        from equipoise.charts.curves import sweep_curves

        save_chart(curves_chart(sweep_curves(results, report_weight=known.report_weight)), chart)


def _arms(file: str | None, mean: str | None, std: str | None, rates: str | None) -> dict[str, Any] | None:
    from equipoise import arm_tables

    if (file, mean, std, rates) == (None, None, None, None):
        return None
    known = arm_tables.chosen_arms(file, mean, std, None, rates)
    arms: dict[str, Any] = {"mean": list(known.mean), "std": list(known.std)}
    if known.are_rates:
        arms = {"rate": list(known.mean)}
    return arms if file is None else arms | {"names": list(known.arms)}


def _steps(name: str, text: str | None) -> list[int] | None:
    from equipoise import arm_tables, checks
    from equipoise.simulation import LARGEST_HORIZON

    if text is None:
        return None
    steps = [int(n) if n.is_integer() else n for n in arm_tables.numbers(name, text)]  # accepts 1e5 as a whole number
    return [checks.whole_number(name, n, 1, LARGEST_HORIZON) for n in steps]


def _warn_of_unused(options: dict[str, Any], study: "Study") -> None:
    """Warn if --reward-weight, --information-kept or --forcing was given and no policy uses it."""
    for key in ("reward_weight", "information_kept", "forcing"):
        taken = [value for policy in study.policies if (value := getattr(policy, key, None)) is not None]
        if key in options and not set(taken) & set(options[key]):
            name = f"--{key.replace('_', '-')}"
            text = (
                f"{name} is not used: every policy that takes it sets its own" if taken else f"no policy takes {name}"
            )
            if key == "reward_weight" and not taken:
                if study.report_weight is None:
                    text += "; see --report-weight"
                elif study.report_weight in options[key]:
                    text += "; only the regret is measured at it"
            print(f"warning: {text}", file=sys.stderr, flush=True)


def _check_complete(options: dict[str, Any]) -> None:
    """Raise if something is missing in the options, when there is no study file."""
    for key, missing in {"horizon": "--horizon is", "arms": "the arms are", "policies": "--policy is"}.items():
        if key not in options:
            hint = "give --horizon, --policy, and the arms by --mean and --std, --rates or --arms; or a STUDY.toml"
            raise InvalidInput(f"{missing} missing", hint=hint)


ITEM_NAMES = (
    "fig1",
    "fig4",
    "fig3-left",
    "fig3-centre",
    "fig3-right",
    "fig6",
    "surrogate",
    "table1",
    "fig7",
    "fig8",
    "outlook",
    "effort",
    "health",
)
"""The names in `equipoise.paper.items`, which is too slow to import for a help text; a test compares them."""


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="ITEM", help=f"Any of {', '.join(ITEM_NAMES)}; all by default.", show_default=False),
    ] = None,
    quick: Annotated[bool, option("--quick", "Work", None, "A tenth of the replications, in some seconds.")] = False,
    treefrog: Annotated[
        Path | None,
        option("--treefrog", "Work", "FILE", "CSV with columns arm, mean, std: the 64 real arms, for the surrogate."),
    ] = None,
    workers: Annotated[int | None, option("--workers", "Work", "N", "Threads; one per processor by default.")] = None,
    out: Annotated[
        Path, option("--out", "Output", "DIR", "Folder of the report, the figures and tables, and what is finished.")
    ] = Path("reproduction"),
    again: Annotated[bool, option("--again", "Output", None, "Compute what is finished, too.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper: compute its tables and figures, judge them, and write a report."""
    from equipoise import checks
    from equipoise.charts import checked_chart_path
    from equipoise.paper import html_report, reproduction, terminal_report
    from equipoise.terminal import announce_compiling

    chosen = reproduction.chosen_items(items or ())
    if workers is not None:
        checks.whole_number("workers", workers, 1)
    arms = None if treefrog is None else _treefrog_arms(treefrog)
    checked_chart_path(out / html_report.PAGE, make_folder=True)

    def show(progress: "reproduction.Progress") -> None:
        if progress.finding is not None:
            writer.add(progress.finding)
        terminal.show(progress)

    try:
        announce_compiling(quiet=quiet)
        with html_report.ReportWriter(out) as writer:
            with terminal_report.TerminalReport(chosen, quick=quick, quiet=quiet, results=not as_json) as terminal:
                result = reproduction.reproduce(
                    items or (), folder=out, quick=quick, again=again, treefrog=arms, workers=workers, on_progress=show
                )
            page = writer.write(result)
    except KeyboardInterrupt:
        if not quiet:
            print(f"interrupted; finished items are kept in {out}, the same command goes on", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        terminal_report.print_as_json(result, page)
    else:
        terminal_report.print_summary(result, page, quiet=quiet)
    if result.missed:
        raise typer.Exit(FAILURE)


def _treefrog_arms(path: Path) -> "Gaussian":
    """Read the arms of the educational experiment."""
    from equipoise import arm_tables
    from equipoise.arms import Gaussian

    known = arm_tables.read_arms(str(path))
    if len(known.arms) != 64:
        raise InvalidInput.of("treefrog", "must be a file with 64 arms", len(known.arms))
    return Gaussian(mean=known.mean, std=known.std)
