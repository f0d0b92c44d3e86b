"""The command `equipoise`: each command is an argument list and a few calls.

Data goes to stdout, everything else to stderr. Exit codes: 0 success, 1 failure, 2 usage, 130 interrupted.
What takes long to load is loaded by the commands that need it, so that help comes at once.
"""

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise import __version__
from equipoise.errors import EquipoiseError, InvalidInput

if TYPE_CHECKING:
    from equipoise.printing import Format
    from equipoise.tables import Arms

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _option(name: str, panel: str, metavar: str | None, text: str) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel=panel)


ArmsFile = Annotated[str | None, _option("--arms", "Arms", "FILE", "CSV with columns arm, mean, std; - reads stdin.")]
Mean = Annotated[str | None, _option("--mean", "Arms", "1,2,3", "Mean rewards of the arms.")]
Std = Annotated[str | None, _option("--std", "Arms", "1,1,1", "Standard deviations of the arms' rewards.")]
Name = Annotated[str | None, _option("--name", "Arms", "A,B,C", "Names of the arms, if not 1, 2, ...")]
Weight = Annotated[
    float | None, _option("--reward-weight", "Goal", "W", "The dial: 0 is accuracy only, 1 reward only.")
]
Error = Annotated[float | None, _option("--error", "Goal", "X", "Instead of a weight: the most reward at this error.")]
Reward = Annotated[
    float | None, _option("--reward", "Goal", "X", "Instead of a weight: the least error at this reward.")
]
Floor = Annotated[str, _option("--floor", "Goal", "X", "Smallest share of every arm; or one per arm, as 0.1,0,0.")]
Horizon = Annotated[int | None, _option("--horizon", "Goal", "N", "Also divide N pulls into whole numbers.")]
Weights = Annotated[str | None, _option("--weights", "Goal", "0,0.5,1", "Reward weights to solve for.")]
Points = Annotated[int | None, _option("--points", "Goal", "N", "That many weights from 0 to 1; 11 by default.")]
AsJson = Annotated[bool, _option("--json", "Output", None, "Print one JSON object, at full precision.")]
AsCsv = Annotated[bool, _option("--csv", "Output", None, "Print CSV, at full precision.")]
ChartFile = Annotated[Path | None, _option("--chart", "Output", "FILE", "Draw it: .html, .png, .svg or .pdf.")]
StudyFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="STUDY.toml", help="What to play, instead of --policy, --horizon and arms.", show_default=False
    ),
]
Policies = Annotated[
    list[str] | None,
    _option("--policy", "Study", "NAME:x=1,y=[2,3]", "A policy and its parameters; lists are swept. Repeatable."),
]
SharedWeight = Annotated[
    str | None,
    _option("--reward-weight", "Study", "W,W", "Weights for policies that take one and have none of their own."),
]
SharedForcing = Annotated[
    str | None, _option("--forcing", "Study", "X,X", "Forcing for policies that take it and have none of their own.")
]
Horizons = Annotated[str | None, _option("--horizon", "Study", "N,N", "Pulls per replication; several are swept.")]
Replications = Annotated[
    int | None, _option("--replications", "Study", "N", "How often each policy plays; 100 by default.")
]
Seed = Annotated[int | None, _option("--seed", "Study", "N", "The same seed gives the same rewards; 0 by default.")]
ReportWeight = Annotated[
    float | None,
    _option("--report-weight", "Study", "W", "Weight of the regret in the table; each policy's own by default."),
]
ResultFile = Annotated[
    Path | None,
    _option(
        "--out", "Output", "FILE.npz", "Results; STUDY.npz or simulation.npz by default. The same command resumes."
    ),
]
FrameFile = Annotated[
    Path | None, _option("--frame", "Output", "FILE", "Also write one row per record: .csv or .parquet.")
]
Again = Annotated[bool, _option("--again", "Output", None, "Compute anew, and replace what the file holds.")]
Quiet = Annotated[bool, _option("--quiet", "Output", None, "No progress and no notes.")]
Backend = Annotated[str | None, _option("--backend", "Workers", "NAME", "threads (default), processes, ray or dask.")]
Workers = Annotated[
    int | None, _option("--workers", "Workers", "N", "Threads or processes; one per processor by default.")
]
Scheduler = Annotated[str | None, _option("--scheduler", "Workers", "ADDRESS", "Address of the ray or dask cluster.")]
Chunk = Annotated[
    int | None, _option("--chunk", "Workers", "N", "Replications per task; about a second's worth by default.")
]
DemoChart = Annotated[Path | None, _option("--out", "Output", "FILE", "Chart file; demo-output/demo.html by default.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"equipoise {__version__}")
        raise typer.Exit


@app.callback()
def equipoise(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Experiments that treat people well and measure every arm accurately, with one dial between the two."""


@app.command()
def allocate(
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    name: Name = None,
    reward_weight: Weight = None,
    error: Error = None,
    reward: Reward = None,
    floor: Floor = "0",
    horizon: Horizon = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    chart: ChartFile = None,
) -> None:
    """Print the best share of pulls for each arm, when means and spreads are known or guessed."""
    from equipoise import charts, printing, tables

    output, goal, lowest = _output(as_json, as_csv, chart), _goal(reward_weight, error, reward), _floor(floor)
    known = tables.chosen_arms(arms, mean, std, name)
    _compile()
    weight = _weight(known, lowest, *goal)
    record = charts.allocation_record(
        known.mean, known.std, reward_weight=weight, floor=lowest, horizon=horizon, arms=known.arms
    )
    if chart is not None:
        _save(charts.allocation_chart(record), chart)
    printing.print_allocation(record, output)


@app.command()
def frontier(
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    name: Name = None,
    weights: Weights = None,
    points: Points = None,
    floor: Floor = "0",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    chart: ChartFile = None,
) -> None:
    """Print reward, error and shares of the best allocation for a range of reward weights."""
    from equipoise import charts, goals, printing, tables

    output, grid, lowest = _output(as_json, as_csv, chart), _weights(weights, points), _floor(floor)
    known = tables.chosen_arms(arms, mean, std, name)
    _compile()
    curve = goals.frontier(known.mean, known.std, reward_weights=grid, floor=lowest)
    if chart is not None:
        record = charts.frontier_record(known.mean, known.std, reward_weights=grid, floor=lowest, arms=known.arms)
        _save(charts.frontier_and_shares_chart(record), chart)
    printing.print_frontier(known, curve, output)


@app.command()
def simulate(
    study: StudyFile = None,
    policy: Policies = None,
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    reward_weight: SharedWeight = None,
    forcing: SharedForcing = None,
    horizon: Horizons = None,
    replications: Replications = None,
    seed: Seed = None,
    report_weight: ReportWeight = None,
    out: ResultFile = None,
    frame: FrameFile = None,
    again: Again = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    quiet: Quiet = False,
    backend: Backend = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    chunk: Chunk = None,
) -> None:
    """Play policies many times, here or on a cluster, and print how well they did."""
    from equipoise import printing, sweeps

    output = _output(as_json, as_csv, None)
    options = _study_options(
        policy, arms, mean, std, reward_weight, forcing, horizon, replications, seed, report_weight
    )
    known = sweeps.study_from_dict(options) if study is None else sweeps.read_study(study, **options)
    file = out or Path("simulation.npz" if study is None else f"{study.stem}.npz")
    if frame is not None:
        sweeps.checked_frame_path(frame)
    try:
        with printing.sweep_notes(known, file, quiet=quiet):
            results = sweeps.sweep(
                known,
                file,
                backend=backend,
                workers=workers,
                scheduler=scheduler,
                chunk=chunk,
                progress=not quiet,
                again=again,
            )
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if frame is not None:
        sweeps.write_frame(results, frame)
    printing.print_sweep(sweeps.summary(results, report_weight=known.report_weight), output)


@app.command()
def demo(
    steps: Annotated[int, typer.Option(help="How many pulls to play.", min=1)] = 20_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.", min=0)] = 1,
    reward_weight: Annotated[float, typer.Option(help="The dial: 0 is accuracy only, 1 reward only.")] = 0.9,
    out: DemoChart = None,
) -> None:
    """Watch ForcingBalance learn the five arms of the paper and find their best shares."""
    from equipoise.demo import run

    raise typer.Exit(run(steps=steps, seed=seed, reward_weight=reward_weight, out=out))


def main() -> None:
    """Run the command; errors made on purpose become a message, a hint and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not end in a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except EquipoiseError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, InvalidInput) else 1)
    except OSError as error:
        print(f"error: {error.strerror or error}", file=sys.stderr)
        # What could not be written would be tried again at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _output(as_json: bool, as_csv: bool, chart: Path | None) -> "Format":
    if as_json and as_csv:
        raise InvalidInput("give --json or --csv; got both")
    if chart is not None:
        from equipoise.charts import checked_chart_path

        checked_chart_path(chart)
    return "json" if as_json else "csv" if as_csv else "table"


def _floor(text: str) -> float | tuple[float, ...]:
    from equipoise.tables import numbers

    lowest = numbers("--floor", text)
    return lowest if len(lowest) > 1 else lowest[0]


def _goal(reward_weight: float | None, error: float | None, reward: float | None) -> tuple[str, float]:
    given = {"reward_weight": reward_weight, "error": error, "reward": reward}
    goals = [(name, value) for name, value in given.items() if value is not None]
    if len(goals) != 1:
        got = " and ".join(f"--{name.replace('_', '-')}" for name, _ in goals) or "none"
        raise InvalidInput(f"give exactly one of --reward-weight, --error and --reward; got {got}")
    return goals[0]


def _weight(known: "Arms", floor: float | tuple[float, ...], goal: str, value: float) -> float:
    from equipoise.goals import weight_for_error, weight_for_reward

    if goal == "error":
        return weight_for_error(known.mean, known.std, error=value, floor=floor)
    if goal == "reward":
        return weight_for_reward(known.mean, known.std, reward=value, floor=floor)
    return value


def _weights(weights: str | None, points: int | None) -> tuple[float, ...]:
    from equipoise.tables import numbers

    if weights is not None and points is not None:
        raise InvalidInput("give --weights or --points; got both")
    if weights is not None:
        return numbers("--weights", weights)
    n_points = 11 if points is None else points
    if n_points < 2:
        raise InvalidInput(f"--points must be at least 2; got {n_points}")
    return tuple(i / (n_points - 1) for i in range(n_points))


def _study_options(
    policies: list[str] | None,
    arms: str | None,
    mean: str | None,
    std: str | None,
    reward_weight: str | None,
    forcing: str | None,
    horizon: str | None,
    replications: int | None,
    seed: int | None,
    report_weight: float | None,
) -> dict[str, Any]:
    """Return what was given as options, in the words of a study file."""
    from equipoise import sweeps, tables

    options: dict[str, Any] = {"replications": replications, "seed": seed}
    for key, text in (("reward_weight", reward_weight), ("forcing", forcing)):
        if text is not None:
            options[key] = list(tables.numbers(f"--{key.replace('_', '-')}", text))
    if horizon is not None:
        options["horizon"] = [int(n) if n.is_integer() else n for n in tables.numbers("--horizon", horizon)]
    if policies:
        options["policies"] = [sweeps.policy_from_text(text) for text in policies]
    if (arms, mean, std) != (None, None, None):
        known = tables.chosen_arms(arms, mean, std, None)
        options["arms"] = {"mean": list(known.mean), "std": list(known.std)}
    if report_weight is not None:
        options["report"] = {"reward_weight": report_weight}
    return {key: value for key, value in options.items() if value is not None}


def _compile() -> None:
    """Solve something small, so that what takes long the first time is done and named."""
    from equipoise.objective import optimal_allocation
    from equipoise.printing import slow_start_note

    with slow_start_note():
        optimal_allocation((0.0, 1.0), (1.0, 1.0), reward_weight=0.5)


def _save(chart: Any, path: Path) -> None:
    from equipoise.charts import save_chart

    save_chart(chart, path)
    print(f"chart written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
