"""The command `equipoise simulate`: play policies many times and tell how they did."""

import atexit
import gc
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.cli.options import (
    ArmsFile,
    AsCsv,
    AsJson,
    ChartFile,
    Mean,
    Std,
    check_chart,
    option,
    output_format,
    save_chart,
)
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.simulation.study import Study

StudyFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="STUDY.toml", help="What to play, instead of --policy, --horizon and arms.", show_default=False
    ),
]
Policies = Annotated[
    list[str] | None,
    option("--policy", "Study", "NAME:x=1,y=[2,3]", "A policy and its parameters; lists are swept. Repeatable."),
]
SharedWeight = Annotated[
    str | None,
    option("--reward-weight", "Study", "W,W", "Weights for policies that take one and have none of their own."),
]
SharedForcing = Annotated[
    str | None, option("--forcing", "Study", "X,X", "Forcing for policies that take it and have none of their own.")
]
Horizons = Annotated[str | None, option("--horizon", "Study", "N,N", "Pulls per replication; several are swept.")]
Replications = Annotated[
    int | None, option("--replications", "Study", "N", "How often each policy plays; 100 by default.")
]
Seed = Annotated[int | None, option("--seed", "Study", "N", "The same seed gives the same rewards; 0 by default.")]
Checkpoints = Annotated[
    str | None, option("--checkpoints", "Study", "N,N", "Steps to record; about 40 on a log scale by default.")
]
ReportWeight = Annotated[
    float | None,
    option("--report-weight", "Study", "W", "Weight of the regret in the table; each policy's own by default."),
]
ResultFile = Annotated[
    Path | None,
    option("--out", "Output", "FILE.npz", "Results, which the same command resumes; STUDY.npz by default."),
]
FrameFile = Annotated[
    Path | None, option("--frame", "Output", "FILE", "Also write one row per record: .csv or .parquet.")
]
Again = Annotated[bool, option("--again", "Output", None, "Compute anew, and replace what the file holds.")]
Quiet = Annotated[bool, option("--quiet", "Output", None, "No progress and no notes.")]
Backend = Annotated[str | None, option("--backend", "Workers", "NAME", "threads (default), processes, ray or dask.")]
Workers = Annotated[
    int | None, option("--workers", "Workers", "N", "Threads or processes; one per processor by default.")
]
Scheduler = Annotated[str | None, option("--scheduler", "Workers", "ADDRESS", "Address of the ray or dask cluster.")]
Chunk = Annotated[
    int | None, option("--chunk", "Workers", "N", "Replications per task; about a second's worth by default.")
]


# shared_weight, shared_forcing and study_horizon are not called like parameters of policies: an error in
# `--policy ForcingBalance:reward_weight=2` must not be told as one in --reward-weight. They are checked below.
def simulate(
    study: StudyFile = None,
    policies: Policies = None,
    arms: ArmsFile = None,
    mean: Mean = None,
    std: Std = None,
    shared_weight: SharedWeight = None,
    shared_forcing: SharedForcing = None,
    study_horizon: Horizons = None,
    replications: Replications = None,
    seed: Seed = None,
    checkpoints: Checkpoints = None,
    report_weight: ReportWeight = None,
    out: ResultFile = None,
    frame: FrameFile = None,
    chart: ChartFile = None,
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
    from equipoise import simulation, terminal

    output = output_format(as_json, as_csv)
    check_chart(chart)
    given = {
        "policies": [simulation.policy_from_text(text) for text in policies] if policies else None,
        "arms": _arms(arms, mean, std),
        "reward_weight": _weights(shared_weight),
        "forcing": _forcings(shared_forcing),
        "horizon": _steps("--horizon", study_horizon),
        "checkpoints": _steps("--checkpoints", checkpoints),
        "replications": replications,
        "seed": seed,
        "report": _report(report_weight),
    }
    options = {key: value for key, value in given.items() if value is not None}  # in the words of a study file
    if study is None:
        _check_complete(options)
    known = simulation.study_from_dict(options) if study is None else simulation.read_study(study, **options)
    _warn_of_unused(options, known)
    # Without a name of its own, each study has its own file: trying something else must not meet the last results.
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
        # The last garbage collection would walk the 155,000 objects of numba and distributed, which takes longer than
        # all the rest of stopping; what is frozen it leaves alone.
        atexit.register(gc.freeze)
        raise typer.Exit(130) from None
    if frame is not None:
        simulation.write_frame(results, frame)
    terminal.print_sweep(simulation.summary(results, report_weight=known.report_weight), output)
    if chart is not None:
        from equipoise.charts import curves_chart
        from equipoise.charts.curves import sweep_curves

        save_chart(curves_chart(sweep_curves(results, report_weight=known.report_weight)), chart)


def _arms(file: str | None, mean: str | None, std: str | None) -> dict[str, Any] | None:
    from equipoise import arm_tables

    if (file, mean, std) == (None, None, None):
        return None
    known = arm_tables.chosen_arms(file, mean, std, None)
    arms = {"mean": list(known.mean), "std": list(known.std)}
    return arms if file is None else arms | {"names": list(known.arms)}


def _weights(text: str | None) -> list[float] | None:
    from equipoise import arm_tables, checks

    name = "--reward-weight"
    return None if text is None else [checks.number_between(name, w, 0, 1) for w in arm_tables.numbers(name, text)]


def _forcings(text: str | None) -> list[float] | None:
    from equipoise import arm_tables, checks

    name = "--forcing"
    return (
        None if text is None else [checks.number_between(name, x, 0, math.inf) for x in arm_tables.numbers(name, text)]
    )


def _steps(name: str, text: str | None) -> list[int] | None:
    from equipoise import arm_tables, checks
    from equipoise.simulation import LARGEST_HORIZON

    if text is None:
        return None
    steps = [int(n) if n.is_integer() else n for n in arm_tables.numbers(name, text)]  # 1e5 is a whole number too
    return [checks.whole_number(name, n, 1, LARGEST_HORIZON) for n in steps]


def _warn_of_unused(options: dict[str, Any], study: "Study") -> None:
    """Say which of --reward-weight and --forcing no policy has taken."""
    for key in ("reward_weight", "forcing"):
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


def _report(weight: float | None) -> dict[str, float] | None:
    from equipoise import checks

    return None if weight is None else {"reward_weight": checks.number_between("--report-weight", weight, 0, 1)}


def _check_complete(options: dict[str, Any]) -> None:
    """Raise if options that are to do without a study file leave something out."""
    for key, missing in {"horizon": "--horizon is", "arms": "the arms are", "policies": "--policy is"}.items():
        if key not in options:
            hint = "give --horizon, --policy, and the arms by --mean and --std or by --arms; or a STUDY.toml"
            raise InvalidInput(f"{missing} missing", hint=hint)
