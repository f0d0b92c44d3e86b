"""The five-arm example of the paper, played live by ForcingBalance through ask and tell  [Sect. 5, Fig. 4]."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from equipoise.bandit import Bandit
from equipoise.charts import TrackingRecord, checked_chart_path, save_chart, tracking_chart
from equipoise.errors import MissingExtra
from equipoise.objective import optimal_allocation, regret
from equipoise.policies import ForcingBalance
from equipoise.printing import aligned, print_table, slow_start_note

if TYPE_CHECKING:
    from rich.console import RenderableType

    from equipoise.arrays import FloatArray

NAMES = ("1", "2", "3", "4", "5")
MEAN = np.array([1.0, 1.5, 2.0, 4.0, 5.0])
STD = np.sqrt([0.05, 0.1, 0.2, 4.0, 0.5])
CHART = Path("demo-output/demo.html")

_FRAME_SECONDS = 0.012
"""How long each picture stays on a terminal: the run itself would be over in the blink of an eye."""


class Game:
    """A bandit, the arms it does not know, and notes taken now and then.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0).
    seed : int
        The s-th reward of an arm depends on the seed, the arm and s alone.

    Examples
    --------
    >>> game = Game(reward_weight=0.9, seed=1)
    >>> for _ in range(1000):
    ...     game.pull()
    >>> game.frequency.round(2)
    array([0.03, 0.03, 0.03, 0.04, 0.86])
    """

    def __init__(self, *, reward_weight: float, seed: int) -> None:
        self.policy = ForcingBalance(reward_weight=reward_weight)
        self.bandit = Bandit(self.policy, arms=NAMES, seed=seed)
        self.optimum = optimal_allocation(MEAN, STD, reward_weight=reward_weight)
        self._noise = [np.random.default_rng([seed, arm]) for arm in range(len(NAMES))]
        self._notes: list[tuple[int, FloatArray, FloatArray]] = []

    def pull(self) -> None:
        """Ask for an arm, draw its reward, tell it."""
        name = self.bandit.ask()
        arm = self.bandit.index(name)
        self.bandit.tell(name, float(MEAN[arm] + STD[arm] * self._noise[arm].standard_normal()))

    def take_note(self) -> None:
        """Keep the shares of this moment for the chart."""
        target = self.policy.target(self.bandit.stats)
        shares = np.full(len(NAMES), np.nan) if target is None else target
        self._notes.append((self.n_pulls, shares, self.frequency))

    @property
    def n_pulls(self) -> int:
        """Pulls so far."""
        return int(self.bandit.stats.pulls.sum())

    @property
    def frequency(self) -> FloatArray:
        """Share of the pulls that each arm got."""
        return np.asarray(self.bandit.stats.pulls / self.n_pulls)

    def rescaled_regret(self) -> float:
        """Return sqrt(n) times what the shares given fall short of the optimum."""
        shortfall = regret(self.frequency, MEAN, STD, reward_weight=self.policy.reward_weight)
        return math.sqrt(self.n_pulls) * float(shortfall)

    def record(self) -> TrackingRecord:
        """Return the notes, ready to be drawn."""
        steps, targets, frequencies = zip(*self._notes, strict=True)
        return TrackingRecord(
            arms=NAMES,
            step=np.array(steps),
            target=np.array(targets),
            frequency=np.array(frequencies),
            optimum=self.optimum,
            reward_weight=self.policy.reward_weight,
        )


def run(*, steps: int, seed: int, reward_weight: float, out: Path | None) -> int:
    """Play, print the result and write the chart; return the exit code, 130 if interrupted."""
    game = None
    chart = _chart_path(out)
    try:
        with slow_start_note():
            game = Game(reward_weight=reward_weight, seed=seed)
            _warm_up()
        _say(f"ForcingBalance plays 5 arms of which it knows nothing: {steps:,} pulls, seed {seed}")
        _play(game, steps)
    except KeyboardInterrupt:
        if game is None or not game.n_pulls:
            _say("interrupted before the first pull")
        else:
            _say(f"interrupted after {game.n_pulls:,} of {steps:,} pulls; this is how far it came")
            _print_result(game)
        return 130
    _print_result(game)
    if chart is not None:
        save_chart(tracking_chart(game.record()), chart)
        _say(f"chart written to {chart}")
    return 0


def _chart_path(out: Path | None) -> Path | None:
    """Return where to write the chart; a missing extra is an error only if a chart was asked for."""
    path = CHART if out is None else out
    try:
        return checked_chart_path(path, make_folder=True)
    except MissingExtra as error:
        if out is not None:
            raise
        _say(f"no chart: {error}")
        return None


def _warm_up() -> None:
    """Take every kind of step once, so that compiling is over before the show begins."""
    game = Game(reward_weight=0.5, seed=0)
    for _ in range(2 * len(NAMES) + 2):
        game.pull()
    game.take_note()


def _play(game: Game, steps: int) -> None:
    """Pull `steps` times; take notes, and show them on a terminal, at moments spread over both kinds of time axis."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    moments = {int(t) for axis in (np.geomspace, np.linspace) for t in axis(1, steps, 100)} | {steps}
    with Live(console=console, transient=True, auto_refresh=False) as screen:
        for step in range(1, steps + 1):
            game.pull()
            if step in moments:
                game.take_note()
                if console.is_terminal:
                    screen.update(_view(game, steps), refresh=True)
                    time.sleep(_FRAME_SECONDS)


def _view(game: Game, steps: int) -> RenderableType:
    """Return the state of the game as it is shown while playing."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("arm", "share wanted", "share given", "", "estimate"):
        table.add_column(head, justify="right")
    columns = (NAMES, game.optimum, game.frequency, _estimates(game))
    for name, wanted, given, estimate in zip(*columns, strict=True):
        bar = ProgressBar(total=1.0, completed=given, width=30, complete_style="cyan", finished_style="cyan")
        table.add_row(name, f"{wanted:.4f}", f"{given:.4f}", bar, estimate)
    progress = ProgressBar(total=steps, completed=game.n_pulls, width=60)
    return Group(table, f"{game.n_pulls:,} of {steps:,} pulls", progress)


def _estimates(game: Game) -> list[str]:
    return ["-" if math.isnan(mean) else f"{mean:.4f}" for mean in game.bandit.stats.mean]


def _print_result(game: Game) -> None:
    print_table(
        [
            ("arm", NAMES),
            ("share wanted", [f"{share:.4f}" for share in game.optimum]),
            ("share given", [f"{share:.4f}" for share in game.frequency]),
            ("estimate", _estimates(game)),
            ("true mean", aligned(MEAN)),
        ]
    )
    print(f"\nrescaled regret after {game.n_pulls:,} pulls: {game.rescaled_regret():.4f}", flush=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
