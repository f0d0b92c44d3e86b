"""The command `equipoise reproduce`: the paper's tables, figures and statements, recomputed and judged."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.options import AsJson, option

if TYPE_CHECKING:
    from equipoise.arms import Gaussian
    from equipoise.paper import reproduction
    from equipoise.paper.findings import Item

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
"""The names in `equipoise.paper.items`, which loads too slowly for a help text; a test compares them."""

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="ITEM", help=f"Any of {', '.join(ITEM_NAMES)}; all by default.", show_default=False),
]
Quick = Annotated[bool, option("--quick", "Work", None, "A tenth of the replications, in some seconds.")]
Treefrog = Annotated[
    Path | None,
    option("--treefrog", "Work", "FILE", "CSV with columns arm, mean, std: the 64 real arms, for the surrogate."),
]
Workers = Annotated[int | None, option("--workers", "Work", "N", "Threads; one per processor by default.")]
Folder = Annotated[
    Path, option("--out", "Output", "DIR", "Folder of the report, the figures and tables, and what is finished.")
]
Again = Annotated[bool, option("--again", "Output", None, "Compute what is finished, too.")]
Quiet = Annotated[bool, option("--quiet", "Output", None, "No progress and no times.")]


def reproduce(
    items: Names = None,
    quick: Quick = False,
    treefrog: Treefrog = None,
    workers: Workers = None,
    out: Folder = Path("reproduction"),
    again: Again = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper: compute its tables and figures, judge them, and write a report."""
    from equipoise import checks
    from equipoise.charts import checked_chart_path
    from equipoise.paper import html_report, reproduction, terminal_report

    chosen = reproduction.chosen_items(items or ())
    if workers is not None:
        checks.whole_number("workers", workers, 1)
    arms = None if treefrog is None else _arms(treefrog)
    checked_chart_path(out / html_report.PAGE, make_folder=True)

    def show(progress: "reproduction.Progress") -> None:
        if progress.finding is not None:
            writer.add(progress.finding)
        terminal.show(progress)

    try:
        _compile(chosen, quiet)
        with html_report.ReportWriter(out) as writer:
            with terminal_report.TerminalReport(chosen, quick=quick, quiet=quiet, results=not as_json) as terminal:
                result = reproduction.reproduce(
                    items or (),
                    folder=out,
                    quick=quick,
                    again=again,
                    treefrog=arms,
                    workers=workers,
                    on_progress=show,
                )
            page = writer.write(result)
    except KeyboardInterrupt:
        if not quiet:
            print(f"interrupted; finished items are kept in {out}, the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        terminal_report.print_as_json(result, page)
    else:
        terminal_report.print_summary(result, page, quiet=quiet)
    if result.missed:
        raise typer.Exit(1)


def _arms(path: Path) -> "Gaussian":
    """Return the arms of the educational experiment."""
    from equipoise import arm_tables
    from equipoise.arms import Gaussian
    from equipoise.errors import InvalidInput

    known = arm_tables.read_arms(str(path))
    if len(known.arms) != 64:
        raise InvalidInput(f"--treefrog must be a file with 64 arms; got {len(known.arms)}")
    return Gaussian(mean=known.mean, std=known.std)


def _compile(items: "tuple[Item, ...]", quiet: bool) -> None:
    """Solve and play something small, so that compiling is over, and announced, before the first item."""
    from equipoise.arms import Gaussian
    from equipoise.cli.options import compile_solver
    from equipoise.policies import ForcingBalance
    from equipoise.simulation import simulate
    from equipoise.terminal import slow_start_note

    compile_solver(quiet=quiet)
    if any(item.n_steps for item in items):
        with slow_start_note(quiet=quiet):
            simulate(ForcingBalance(reward_weight=0.5), Gaussian(mean=[0, 1], std=[1, 1]), horizon=1)
