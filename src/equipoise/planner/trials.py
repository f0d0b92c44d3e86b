"""Play simulated experiments: every way to assign on the same people, in compiled code, on threads or a cluster."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.analysis.best_arm import MOST_RIVALS
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.multiplicity import arm_failures
from equipoise.errors import InvalidInput
from equipoise.experiment import Experiment
from equipoise.experiment.configuration import Configuration, checked_settings
from equipoise.experiment.decider import Decider
from equipoise.experiment.inference import leader_lost, tightest_at, widest_difference
from equipoise.kernels import removes_exactly
from equipoise.planner.paths import Paths
from equipoise.planner.worlds import DAY, World
from equipoise.progress import Progress, Reporter, StepBar, reporter
from equipoise.simulation import available_processors
from equipoise.simulation.workers import connected
from equipoise.stats import ArmStats
from equipoise.unit_lifecycle import COUNTED, EXPIRED, NOTHING, REWARDED, STATES

if TYPE_CHECKING:
    from equipoise.kernels.assignment import Design
    from equipoise.kernels.log_replay import Lives
    from equipoise.kernels.rules import Rule
    from equipoise.kernels.trial import Looks, Setting, Table
    from equipoise.planner.population import Population

READABLE = ("n_may_be_best", "most_lost", "widest_difference")
"""What is only read from the evidence if asked for, as it takes long."""

N_LOOKS = 40
"""How often is looked by default while people come."""

_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(Experiment.create).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY and name not in ("paused", "who")
}


class TrialsInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped the simulations; `paths` holds the replications finished under every way, or None."""

    def __init__(self, paths: Paths | None) -> None:
        super().__init__("the simulation was interrupted")
        self.paths = paths


class Way(NamedTuple):
    """A way to assign and count: the settings of an experiment, checked."""

    configuration: Configuration
    names: tuple[str, ...]
    floors: tuple[float, ...]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Way:
        """Return the way with these settings, which `Experiment.create` documents.

        Examples
        --------
        >>> import equipoise as eq
        >>> way = Way.of({"arms": ["plain", "prize"], "policy": eq.Uniform(), "control": "plain", "control_share": 0.2})
        >>> way.floors
        (0.2, 0.0)
        """
        unknown = [name for name in settings if name not in _DEFAULTS]
        if unknown:
            raise InvalidInput.of("ways", f"must have settings of an experiment; {unknown[0]!r} is none")
        # A seed is drawn for each replication; this one saves drawing another.
        configuration, pairs = checked_settings(**_DEFAULTS | {"seed": 0} | dict(settings))
        names, floors = zip(*pairs, strict=True)
        way = cls(configuration, names, floors)
        if not way.decider().is_compiled:
            raise InvalidInput.of("policy", "must be one that is compiled, to be simulated", configuration.policy)
        return way

    def decider(self) -> Decider:
        """Return what decides when all arms are in play."""
        return Decider(self.configuration, ["active"] * len(self.names), list(self.floors))

    def for_kernel(self) -> tuple[Rule, Design, Setting, Lives]:
        """Return the way in the form that the compiled loop reads, with scratch of its own."""
        from equipoise.kernels import arm_evidence as rows
        from equipoise.kernels.log_replay import Lives
        from equipoise.kernels.people import NEVER
        from equipoise.kernels.trial import Setting

        configuration, n_arms = self.configuration, len(self.names)
        missing, life = configuration.missing, configuration.missing.life.array
        reachable = [REWARDED, COUNTED, EXPIRED]
        removes = (life[:, reachable, 0] >= 0) & (life[:, reachable, 2] != NOTHING)
        ends = Evidence.of(
            ArmStats(n_arms),
            reward_range=configuration.counted_range,
            sign=configuration.sign,
            tightest_at=tightest_at(configuration, n_arms),
        ).moments[:, 0]
        window = missing.window_microseconds
        setting = Setting(
            strict=False,
            warm_up=configuration.warm_up,
            window=NEVER if window is None else window,
            removes=bool(removes.any()),
            has_default=missing.default is not None,
            n_most=NEVER if configuration.most_units is None else configuration.most_units,
            low=float(ends[rows.LOW]),
            high=float(ends[rows.HIGH]),
            unit=float(ends[rows.SCALE]),
            tuned=float(ends[rows.TUNED]),
            log_threshold=-math.log(configuration.failure_probability),
            most_rivals=MOST_RIVALS + 1,
            failure=np.ascontiguousarray(arm_failures(configuration.failure_probability, n_arms, n_arms)),
        )
        counter_of = [-1 if meaning.counter is None else meaning.counter for meaning in STATES.values()]
        lives = Lives(
            steps=life,
            counter_of=np.array(counter_of, np.int64),
            default=math.nan if missing.default is None else missing.default,
            cap=math.inf if configuration.reward_cap is None else configuration.reward_cap,
            sign=configuration.sign,
            exact=removes_exactly(configuration.kernels),
        )
        return *self.decider().for_kernel(), setting, lives


def default_looks(days: float, n_looks: int = N_LOOKS) -> FloatArray:
    """Return the times of looks, evenly spread over the days in which people come, and one when all is over.

    Examples
    --------
    >>> default_looks(10, n_looks=4) / 86_400
    array([ 2.5,  5. ,  7.5, 10. ,  inf])
    """
    return np.append(DAY * days * np.arange(1, n_looks + 1) / n_looks, np.inf)


def play(
    worlds: Sequence[World],
    ways: Sequence[Mapping[str, Any]],
    *,
    seed: int,
    first: int = 0,
    look_seconds: FloatArray | None = None,
    drawn: Mapping[str, FloatArray] | None = None,
    read: Iterable[str] = (),
    workers: int | None = None,
    backend: str = "threads",
    scheduler: str | None = None,
    progress: Progress | bool | None = None,
) -> Paths:
    """Simulate an experiment on every world under every way, and return what it recorded at each look.

    Results depend on neither backend nor workers. Replications `first` and on of the same seed may be played later, or
    elsewhere, and joined.

    Parameters
    ----------
    worlds : sequence of World
        The truth of each replication.
    ways : sequence of mapping
        Settings as `Experiment.create` takes them, without store, name and seed; all with the same arms.
    seed : int
        Determines, with the number of a replication, its people and the random numbers of decisions.
    first : int
        Number of the first replication.
    look_seconds : array (n_looks,), optional
        When to look, in seconds from the start, increasing; the last is infinite. `default_looks` by default.
    drawn : dict of array (n_worlds,), optional
        The guesses behind each world, for the record.
    read : some of `READABLE`
        What to read from the evidence besides. The first takes some 5 us a look with five arms, the others 50 to 500,
        on one thread at a time.
    workers : int, optional
        Threads or processes; by default one per available processor.
    backend : {"threads", "processes", "ray", "dask"}
        Where to simulate.
    scheduler : str, optional
        Address of the cluster for "ray" and "dask".
    progress : bool or callable, optional
        True shows a bar; a function is called with (experiments done, experiments in all).

    Raises
    ------
    TrialsInterrupted
        On Ctrl-C, with the replications finished so far.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise.planner.worlds import new_world
    >>> worlds = [new_world([0.3, 0.5], per_day=[50] * 20, delay=3600)] * 4
    >>> arms = {"arms": ["plain", "prize"], "reward_range": (0, 1)}
    >>> paths = play(worlds, [arms | {"policy": eq.Uniform()}, arms | {"reward_weight": 0.9}], seed=1)
    >>> paths.assigned[:, :, -1].mean(axis=1)  # of the arms, under both ways
    array([[505.25, 504.75],
           [146.5 , 863.5 ]])
    """
    job = _Job.of(tuple(worlds), ways, seed, first, look_seconds, frozenset(read))
    n_worlds = len(job.worlds)
    given = {name: np.asarray(values, np.float64) for name, values in (drawn or {}).items()}
    total = n_worlds * len(job.ways)
    report = StepBar(total, noun="experiments") if progress is True else reporter(progress, total)
    done, interrupted = _play_all(job, backend, workers, scheduler, report)
    if interrupted:
        raise TrialsInterrupted(_joined(job, done, given) if done else None)
    return _joined(job, done, given)


class _Job(NamedTuple):
    """What is to be played."""

    worlds: tuple[World, ...]
    ways: tuple[Way, ...]
    seed: int
    first: int
    look_seconds: FloatArray
    read: frozenset[str]

    @classmethod
    def of(
        cls,
        worlds: tuple[World, ...],
        ways: Sequence[Mapping[str, Any]],
        seed: int,
        first: int,
        look_seconds: FloatArray | None,
        read: frozenset[str],
    ) -> _Job:
        """Check everything, before anything is played."""
        if not worlds:
            raise InvalidInput.of("worlds", "must have at least one world")
        made = tuple(Way.of(settings) for settings in ways)
        if not made:
            raise InvalidInput.of("ways", "must have at least one way")
        n_arms = worlds[0].mean.size
        if any(world.mean.size != n_arms for world in worlds) or any(way.names != made[0].names for way in made):
            raise InvalidInput.of("ways", "must have the same arms, and every world as many")
        if len(made[0].names) != n_arms:
            raise InvalidInput.of("ways", f"must have the {n_arms} arms of the worlds", list(made[0].names))
        for name in read:
            checks.one_of("read", name, READABLE)
        days = max(world.per_day.size for world in worlds)
        looks = default_looks(days) if look_seconds is None else np.asarray(look_seconds, np.float64)
        if looks.ndim != 1 or not (np.diff(looks) > 0).all() or looks[-1] != np.inf or not looks[0] >= 0:
            raise InvalidInput.of("look_seconds", "must increase, and end with infinity", look_seconds)
        return cls(
            worlds,
            made,
            checks.whole_number("seed", seed, 0, 2**63 - 1),
            checks.whole_number("first", first, 0),
            looks,
            read,
        )


def _play_all(
    job: _Job, backend: str, workers: int | None, scheduler: str | None, report: Reporter
) -> tuple[dict[int, Paths], bool]:
    """Play a job; return parts by the place of their first world, and whether Ctrl-C came before the end."""
    if backend == "threads":
        n_workers = available_processors() if workers is None else checks.whole_number("workers", workers, 1)
        if scheduler is not None:
            raise InvalidInput.of("scheduler", "is for the backends ray and dask")
        trials = Trials(job)
        with report:
            interrupted = trials.play(n_workers, report)
        finished = np.flatnonzero(trials.finished)
        if not finished.size:
            return {}, interrupted
        return {0: trials.paths if finished.size == len(job.worlds) else trials.paths.only(finished)}, interrupted
    done: dict[int, Paths] = {}
    n_worlds, n_done = len(job.worlds), 0
    with report, connected(backend, workers, scheduler, job) as ready:
        size = max(1, math.ceil(n_worlds / (4 * ready.n_at_once)))
        tasks = [(start, min(start + size, n_worlds)) for start in range(0, n_worlds, size)]
        results = ready.results(_play_some, tasks)
        try:
            for start, paths in results:
                done[start] = paths
                n_done += paths.n_replications
                report.show(n_done * len(job.ways))
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):
                results.throw(KeyboardInterrupt)  # if closed instead, joblib would warn of unused results
            return done, True
    return done, False


def _play_some(job: _Job, start: int, stop: int) -> tuple[int, Paths]:
    """Play some replications of a job, in another process."""
    part = job._replace(worlds=job.worlds[start:stop], first=job.first + start)
    trials = Trials(part)
    if trials.play(1, Reporter()):
        raise KeyboardInterrupt
    return start, trials.paths


def _joined(job: _Job, parts: dict[int, Paths], drawn: dict[str, FloatArray]) -> Paths:
    """Return the parts in order, with the guesses drawn for them."""
    starts = sorted(parts)
    paths = parts[starts[0]]
    for start in starts[1:]:
        paths = paths.joined(parts[start])
    chosen = {name: values[paths.replication - job.first] for name, values in drawn.items()}
    return paths.with_drawn(chosen)


class Trials:
    """The experiments of a job, and the paths that they fill."""

    def __init__(self, job: _Job) -> None:
        self.job = job
        n_worlds, n_arms = len(job.worlds), job.worlds[0].mean.size
        self.paths = Paths.empty(len(job.ways), n_worlds, job.look_seconds, n_arms, first=job.first)
        self.finished = np.zeros(n_worlds, bool)
        self._places = iter(range(n_worlds))
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._n_done = 0
        self._own = threading.local()

    def play(self, n_workers: int, report: Reporter) -> bool:
        """Play everything on threads; return whether Ctrl-C came before the end."""
        with ThreadPoolExecutor(n_workers) as pool:
            waiting: set[Future[None]] = set()
            try:
                self._compile()  # in the main thread, which receives Ctrl-C
                waiting = {pool.submit(self._work) for _ in range(min(n_workers, self.finished.size))}
                while waiting:
                    ended, waiting = wait(waiting, timeout=0.1, return_when=FIRST_EXCEPTION)
                    report.show(self._n_done)
                    for future in ended:
                        future.result()
            except BaseException as error:
                self._stopped.set()
                wait(waiting)
                if isinstance(error, KeyboardInterrupt):
                    return True
                raise
        return False

    def _compile(self) -> None:
        """Play an experiment without people."""
        from equipoise.planner.population import Population

        looks = Paths.empty(1, 1, np.array([np.inf]), self.paths.mean.shape[1])
        empty = self.job.worlds[0]._replace(most_people=0)
        self._play_one(Population(empty, seed=0), self.job.ways[0], looks, 0, 0)

    def _work(self) -> None:
        """Play one replication after another under every way, until none is left or until stopped."""
        from equipoise.planner.population import Population

        job, paths = self.job, self.paths
        look_at = np.nan_to_num(job.look_seconds * 1e6, posinf=2.0**62).astype(np.int64)
        while not self._stopped.is_set():
            with self._lock:
                r = next(self._places, None)
            if r is None:
                return
            population = Population(job.worlds[r], seed=job.seed, replication=job.first + r)
            paths.mean[r], paths.std[r] = population.world.mean, population.world.std
            paths.arrived[r] = np.searchsorted(population.arrived, look_at, side="right")
            for w, way in enumerate(job.ways):
                if self._stopped.is_set():
                    return
                self._play_one(population, way, paths, w, r)
                with self._lock:
                    self._n_done += 1
            self.finished[r] = True

    def _play_one(self, population: Population, way: Way, paths: Paths, w: int, r: int) -> None:
        """Play one experiment into its place in the paths."""
        from equipoise.kernels.trial import play_trial

        looks = _looks_of(paths, w, r, self.job.read)
        table = self._table(population.n_people, weighted=way.configuration.policy.weighs_rewards)
        told, order = population.told
        rule, design, setting, lives = self._for_kernel(w, way)
        last = play_trial(
            population.world,
            population.people,
            population.n_people,
            told,
            order,
            population.seed,
            population.replication,
            population.experiment_seed,
            rule,
            design,
            setting,
            lives,
            table,
            looks,
        )
        paths.last_reward_seconds[w, r] = last / 1e6
        for place in range(looks.moments.shape[0]):
            self._read(way, looks.moments[place], (w, r, place), paths)

    def _read(self, way: Way, moments: FloatArray, place: tuple[int, int, int], paths: Paths) -> None:
        """Read from the evidence at a look what was asked for."""
        configuration, read = way.configuration, self.job.read
        evidence = Evidence(np.ascontiguousarray(moments))
        if "most_lost" in read:
            lost = leader_lost(configuration, evidence)
            paths.most_lost[place] = math.nan if lost is None else lost
        if "widest_difference" in read:
            widest = widest_difference(configuration, list(way.names), evidence, n_first=len(way.names))
            paths.widest_difference[place] = math.nan if widest is None else widest

    def _table(self, n_people: int, *, weighted: bool) -> Table:
        """Return this thread's scratch, large enough."""
        from equipoise.kernels.trial import new_table

        kept: dict[bool, Table] = self._own.__dict__.setdefault("tables", {})
        if weighted not in kept or kept[weighted].arm.size < n_people:
            kept[weighted] = new_table(n_people, self.paths.mean.shape[1], weighted=weighted)
        return kept[weighted]

    def _for_kernel(self, w: int, way: Way) -> tuple[Rule, Design, Setting, Lives]:
        """Return a way as the compiled loop reads it, with this thread's own scratch."""
        kept: dict[int, tuple[Rule, Design, Setting, Lives]] = self._own.__dict__.setdefault("ways", {})
        if w not in kept:
            kept[w] = way.for_kernel()
        return kept[w]


def _looks_of(paths: Paths, w: int, r: int, read: frozenset[str] = frozenset()) -> Looks:
    """Return where the kernel writes what it sees: views of one experiment's part of the paths."""
    from equipoise.kernels.arm_evidence import ROWS
    from equipoise.kernels.trial import Looks

    at: IntArray = np.nan_to_num(paths.look_seconds * 1e6, posinf=2.0**62).astype(np.int64)
    n_looks, n_arms = paths.assigned.shape[2:]
    names = ("assigned", "counted", "open", "held", "missing", "estimate", "spread", "low", "high")
    parts = {name: getattr(paths, name)[w, r] for name in names}
    n_read = n_looks if read - {"n_may_be_best"} else 0
    best: Any = paths.n_may_be_best[w, r] if "n_may_be_best" in read else paths.n_may_be_best[w, r, :0]
    return Looks(at=at, **parts, n_may_be_best=best, moments=np.empty((n_read, ROWS, n_arms)))
