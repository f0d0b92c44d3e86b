"""A durable experiment: ask and tell by unit, in a store that survives crashes, retries and many processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

from equipoise import checks
from equipoise.errors import ExperimentExists, UnknownExperiment
from equipoise.experiment import commands
from equipoise.experiment.commands import asks, tells
from equipoise.experiment.configuration import checked_arms, checked_configuration
from equipoise.experiment.event_log import read_event
from equipoise.experiment.execution import carry_out, create
from equipoise.experiment.names import LONGEST_NAME, checked_text, checked_unit, checked_who
from equipoise.experiment.plan import MOST_SETTLED
from equipoise.experiment.records import Assignment, Event, ExperimentSummary, ToldReward
from equipoise.experiment.state import load_state
from equipoise.experiment.status import describe, read_status, summaries
from equipoise.experiment.units import read_unit
from equipoise.policies.pooled_balance import policy_or_recommended
from equipoise.store import Store, open_store
from equipoise.store.schema import microseconds

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import IO

    from equipoise.experiment.commands import Request
    from equipoise.experiment.configuration import Configuration
    from equipoise.experiment.missing_rewards import MissingReward
    from equipoise.experiment.plan import Plan
    from equipoise.experiment.records import History, Status, UnitStatus, Verification, WhatIf
    from equipoise.experiment.state import State
    from equipoise.experiment.stopping import StoppingRule
    from equipoise.policies import Policy
    from equipoise.store import Transaction

# Within the class, `list` is its method.
Assignments: TypeAlias = list[Assignment]
ToldRewards: TypeAlias = list[ToldReward]
Answers: TypeAlias = list[Any]
Events: TypeAlias = list[Event]
Summaries: TypeAlias = list[ExperimentSummary]

_PAGE = 1_000


class Experiment:
    """An experiment in a store. Make one with `create`, come back to it with `open`.

    Every method that changes something returns when the change is durable. All can be repeated safely: a unit keeps its
    arm, a reward counts once. Any number of processes and threads may work on one experiment.

    Examples
    --------
    >>> import equipoise as eq
    >>> experiment = eq.Experiment.create(
    ...     "memory:", "fractions", arms=["number line", "pie"], policy=eq.ForcingBalance(reward_weight=0.8), seed=1
    ... )
    >>> experiment.ask("student-42").arm
    'number line'
    >>> experiment.tell("student-42", 0.75).new, experiment.tell("student-42", 0.75).new
    (True, False)
    >>> experiment.tell("student-42", 0.5)
    Traceback (most recent call last):
    ...
    equipoise.errors.RewardConflict: the reward of unit 'student-42' was told before and is 0.75; got 0.5
    hint: correct(unit, reward, reason) replaces it, and logs why
    >>> experiment.verify().n_events
    3
    """

    def __init__(self, store: Store, number: int, name: str, who: str | None = None) -> None:
        self.store = store
        self.name = name
        self.who = who
        self._id = number

    @property
    def number(self) -> int:
        """The store's number for it."""
        return self._id

    # Making and finding

    @classmethod
    def create(
        cls,
        store: Store | str,
        name: str,
        *,
        arms: Sequence[str],
        policy: Policy | None = None,
        reward_weight: float | None = None,
        seed: int | None = None,
        floor: float | Sequence[float] | Mapping[str, float] = 0.0,
        control: str | None = None,
        control_share: float = 0.0,
        warm_up: int = 0,
        reward_range: tuple[float, float] | None = None,
        direction: str = "maximise",
        missing: MissingReward | None = None,
        stopping: StoppingRule | Sequence[StoppingRule] = (),
        failure_probability: float = 0.05,
        metadata: Mapping[str, Any] | None = None,
        who: str | None = None,
    ) -> Experiment:
        """Make an experiment; what is given here cannot be changed later, except the policy's weight and the arms.

        Parameters
        ----------
        store : Store or str
            Where to keep it, or the URL of that.
        name : str
            What to call it; unique in the store.
        arms : sequence of str
            Names of the arms.
        policy : Policy, optional
            How to assign.
        reward_weight : float, optional
            Instead of a policy: the dial between reward (1) and accuracy (0) of the one we recommend, `PooledBalance`
            with assignments that are drawn at random.
        seed : int, optional
            What the random numbers depend on; drawn and logged if it is not given.
        floor : float, one per arm, or by arm's name
            Share of assignments kept for each arm whatever the policy says. Shares are added: an arm's probability is
            its share plus what all shares leave, times the policy's probability.
        control, control_share
            An arm and the share to keep for it, if that is more than its floor.
        warm_up : int
            Every arm gets this many units first, in random order.
        reward_range : (float, float), optional
            Lowest and highest reward; others are refused, and intervals become exact instead of asymptotic.
        direction : {"maximise", "minimise"}
            Whether large or small rewards are good.
        missing : MissingReward, optional
            `WaitForReward`, `DefaultReward` or `DropUnit`; the first by default.
        stopping : StoppingRule or several
            `Budget`, `Deadline`, `Precision`; `status` reports them, nothing acts on them.
        failure_probability : float
            One minus the confidence of each arm's interval.
        metadata : dict, optional
            Anything to keep with the experiment.
        who : str, optional
            Who does this, for the log; also for what is done with the object returned.
        """
        opened = _opened(store)
        checked_text("name", name, LONGEST_NAME)
        configuration = checked_configuration(
            policy=policy_or_recommended(policy, reward_weight),
            seed=seed,
            warm_up=warm_up,
            control=control,
            control_share=control_share,
            reward_range=reward_range,
            direction=direction,
            missing=missing,
            stopping=stopping,
            failure_probability=failure_probability,
            metadata=metadata,
        )
        pairs = checked_arms(arms, floor, control, configuration.control_share)
        return cls(opened, create(opened, name, configuration, pairs, who), name, who)

    @classmethod
    def open(cls, store: Store | str, name: str, *, who: str | None = None) -> Experiment:
        """Return the experiment of that name."""
        opened = _opened(store)
        checked_text("name", name, LONGEST_NAME)
        number = opened.read(lambda transaction: transaction.find(name))
        if number is None:
            raise UnknownExperiment(
                f"{opened.url} has no experiment {name!r}", hint="Experiment.list(store) shows those it has"
            )
        return cls(opened, number, name, checked_who(who))

    @classmethod
    def list(cls, store: Store | str) -> Summaries:
        """Return all experiments of a store, oldest first."""
        return summaries(_opened(store))

    # Units

    def ask(self, unit: str, attributes: dict[str, Any] | None = None) -> Assignment:
        """Return the arm of a unit: the one it has, or else the one the policy gives it now.

        Parameters
        ----------
        unit : str
            Who is assigned: a person, a class, a session.
        attributes : dict, optional
            Anything to log with a new assignment; the policy does not see it.
        """
        return cast("Assignment", self._one(commands.Ask(unit, attributes, who=self.who)))

    def ask_many(
        self,
        units: Iterable[str | tuple[str, dict[str, Any] | None]] | Mapping[str, dict[str, Any] | None],
    ) -> Assignments:
        """Return the arms of several units, in one transaction: what as many single asks would give.

        Attributes to log come as pairs of a unit and its attributes, or as a mapping from one to the other.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> [one.arm for one in experiment.ask_many(["ada", ("bob", {"class": "4b"})])]
        ['a', 'b']
        """
        return self._together(asks(units, self.who))

    def tell(self, unit: str, reward: float) -> ToldReward:
        """Record the reward of a unit that was assigned, however late; telling the same again changes nothing."""
        return cast("ToldReward", self._one(commands.Tell(unit, reward, who=self.who)))

    def tell_many(self, rewards: Mapping[str, float] | Iterable[tuple[str, float]]) -> ToldRewards:
        """Record the rewards of several units, in one transaction; if any is refused, none is recorded."""
        return self._together(tells(rewards, self.who))

    def correct(self, unit: str, reward: float, reason: str) -> ToldReward:
        """Put another reward in the place of the one told; the log keeps both, and the reason."""
        return cast("ToldReward", self._one(commands.Correct(unit, reward, reason, who=self.who)))

    def apply(self, requests: Iterable[Request]) -> Answers:
        """Carry out requests in the order given, in one transaction, and return what each gives.

        In the place of a request that was refused stands its error; the others are not affected.

        Examples
        --------
        >>> import equipoise as eq
        >>> from equipoise.experiment import Ask, Tell
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> answers = experiment.apply([Ask("x"), Tell("y", 1.0), Ask("y"), Tell("y", 1.0)])
        >>> [type(answer).__name__ for answer in answers]
        ['Assignment', 'UnknownUnit', 'Assignment', 'ToldReward']
        """
        return self._run(list(requests), together=False).results

    def apply_all(self, requests: Iterable[Request]) -> Answers:
        """Carry out requests in the order given, all or none: the first that is refused is raised."""
        return self._together(list(requests))

    def assignment(self, unit: str) -> Assignment | None:
        """Return the assignment of a unit, or None if it has none; nothing is written."""
        found = self.unit(unit)
        if found is None:
            return None
        return Assignment(found.unit, found.arm, found.number, found.probability, found.forced, found.at, False)

    def unit(self, unit: str) -> UnitStatus | None:
        """Return a unit's assignment and what became of its reward, or None if it has none; nothing is written.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> told = experiment.tell(experiment.ask("ada").unit, 0.75)
        >>> found = experiment.unit("ada")
        >>> found.arm, found.state, found.reward
        ('a', 'counted', 0.75)
        """
        checked_unit(unit)
        now = microseconds(self.store.now())
        return self.store.read(lambda transaction: read_unit(transaction, self._id, self._load(transaction), unit, now))

    # The experiment

    def pause(self) -> None:
        """Take no new units for a while."""
        self._one(commands.Pause(who=self.who))

    def resume(self) -> None:
        """Take new units again after a pause."""
        self._one(commands.Resume(who=self.who))

    def stop(self) -> None:
        """Take no new units any more; rewards are still accepted."""
        self._one(commands.Stop(who=self.who))

    def finish(self, *, anyway: bool = False) -> None:
        """Close the experiment: no new units, no more rewards, no corrections.

        Units whose window has passed are settled first. While rewards are held back, this is refused with
        `RewardsHeld`, which says when the last window passes: `stop` the experiment first and finish it then. With
        `anyway` it is finished at once, and those rewards stay outside the estimates for ever.
        """
        self.settle()
        self._one(commands.Finish(anyway, who=self.who))

    def add_arm(self, name: str, *, floor: float = 0.0) -> None:
        """Add an arm; after its warm-up and forcing the policy gives it its share of those who come from now on."""
        self._one(commands.AddArm(name, floor, who=self.who))

    def pause_arm(self, name: str) -> None:
        """Assign nobody to an arm for a while; the policy decides as if it did not exist."""
        self._one(commands.PauseArm(name, who=self.who))

    def resume_arm(self, name: str) -> None:
        """Assign people to an arm again after a pause."""
        self._one(commands.ResumeArm(name, who=self.who))

    def retire_arm(self, name: str) -> None:
        """Assign nobody to an arm any more; rewards of those who have it still count."""
        self._one(commands.RetireArm(name, who=self.who))

    def change_weight(self, reward_weight: float) -> None:
        """Change the policy's weight between reward and accuracy, from the next decision on."""
        self._one(commands.ChangeWeight(reward_weight, who=self.who))

    def settle(self) -> None:
        """Deal with all units whose window has passed; every ask and tell deals with some of them."""
        while len(self._run([commands.Settle()], together=True).events) >= MOST_SETTLED:
            pass

    # Reading

    @property
    def configuration(self) -> Configuration:
        """The settings as they are now."""
        return self.store.read(self._load).configuration

    def describe(self) -> dict[str, Any]:
        """Return name, state, arms and settings as plain data that JSON can hold.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> experiment.describe()["arms"]
        [{'name': 'a', 'state': 'active', 'floor': 0.0}, {'name': 'b', 'state': 'active', 'floor': 0.0}]
        """
        return describe(self.store.read(self._load))

    def status(self) -> Status:
        """Return where the experiment stands: arms, totals, intervals, stopping rules.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> for unit, reward in enumerate([1.0, 2.0, 3.0]):
        ...     experiment.tell(experiment.ask(f"student-{unit}").unit, reward).arm
        'a'
        'b'
        'a'
        >>> status = experiment.status()
        >>> status.average_reward, [arm.mean for arm in status.arms]
        (2.0, [2.0, 2.0])
        """
        now = self.store.now()
        return self.store.read(lambda transaction: read_status(transaction, self._id, self._load(transaction), now))

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the log, from the event after this number on."""
        while page := self.events_page(after, _PAGE):
            yield from page
            after = page[-1].number

    def events_page(self, after: int, limit: int) -> Events:
        """Return at most so many events, from the one after this number on."""
        last, most = checks.whole_number("after", after, 0), checks.whole_number("limit", limit, 1)

        def work(transaction: Transaction) -> tuple[Any, State]:
            return transaction.events(self._id, last, most), self._load(transaction)

        rows, state = self.store.read(work)
        return [read_event(row, state.names) for row in rows]

    def history(self, points: int = 100) -> History:
        """Return counts and means at evenly spaced events, for charts."""
        from equipoise.experiment.event_log import read_history

        wanted = checks.whole_number("points", points, 1, 100_000)
        return self.store.read(lambda transaction: read_history(transaction, self._id, self._load(transaction), wanted))

    def what_if(self, reward_weight: float) -> WhatIf:
        """Return the allocation another weight would ask for now, and its price in reward and error.

        Examples
        --------
        >>> import equipoise as eq
        >>> policy = eq.ForcingBalance(reward_weight=0.5)
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=policy, seed=1)
        >>> for unit, reward in enumerate([1.0, 2.0, 2.0, 3.0]):
        ...     told = experiment.tell(experiment.ask(f"student-{unit}").unit, reward)
        >>> other = experiment.what_if(0.9)
        >>> round(other.reward_change, 3), round(other.error_ratio, 2)
        (0.195, 1.54)
        """
        from equipoise.experiment.status import what_if

        return what_if(self.store.read(self._load), reward_weight)

    def verify(self) -> Verification:
        """Replay the log from nothing and compare every decision, probability and statistic with what is recorded.

        Raises `VerificationFailed`, which names the first difference.
        """
        from equipoise.experiment.verification import verify

        self.store.read(self._load)
        return self.store.read(lambda transaction: verify(transaction, self._id, self.name), repeatable=False)

    def rebuild(self) -> bool:
        """Write statistics and everything else that is kept from the log anew; return whether anything changed.

        If so, that is logged too, and other programs that use the experiment read it all again.
        """
        from equipoise.experiment.verification import rebuild

        now, who = microseconds(self.store.now()), checked_who(self.who)
        changed = self.store.change(self._id, lambda transaction: rebuild(transaction, self._id, self.name, now, who))
        self.store.states.pop(self._id, None)
        return changed

    def export(
        self,
        target: str | os.PathLike[str] | IO[str] | IO[bytes],
        format: str | None = None,  # noqa: A002
    ) -> int:
        """Write one row per unit, with its assignment and reward, and return how many there are.

        Parameters
        ----------
        target : path or open file
            Where to; a file that exists is replaced when the new one is complete. A file that is open must be so for
            text, or for bytes where Parquet is written.
        format : {"csv", "jsonl", "parquet"}, optional
            By the path's ending if it is not given. Parquet needs the extra `frames`. Units are as they were given: a
            spreadsheet that opens the CSV takes one that begins with = for a formula.
        """
        from equipoise.experiment.export import export

        self.store.read(self._load)
        return self.store.read(
            lambda transaction: export(transaction, self._id, self._load(transaction), target, format),
            repeatable=False,
        )

    def copy_to(self, store: Store | str, *, progress: Callable[[int, int], None] | None = None) -> Experiment:
        """Copy the experiment with its whole log to another store, where it can go on, and return it there.

        All of it is there when this returns; if it raises, or is interrupted, nothing is. `progress` is called now and
        then with the number of events copied and of all.
        """
        from equipoise.experiment.verification import copy

        opened = _opened(store)
        if opened is self.store:  # a store in memory would wait for itself
            raise ExperimentExists(f"{opened.url} is where {self.name!r} is already", hint="copy to another store")
        self.store.read(self._load)
        number = self.store.read(
            lambda source: opened.change(
                None, lambda target: copy(source, self._id, self.name, target, opened.url, progress)
            ),
            repeatable=False,
        )
        return Experiment(opened, number, self.name, self.who)

    def __repr__(self) -> str:
        return f"Experiment.open({self.store!r}, {self.name!r})"

    # How it is done

    def _load(self, transaction: Transaction) -> State:
        return load_state(self.store, transaction, self._id)

    def _one(self, request: Request) -> Any:
        return self._run([request], together=True).results[0]

    def _together(self, requests: Sequence[Request]) -> Answers:
        return self._run(requests, together=True).results if requests else []

    def _run(self, requests: Sequence[Request], *, together: bool) -> Plan:
        return carry_out(self.store, self._id, requests, together=together)


def _opened(store: Store | str) -> Store:
    return store if isinstance(store, Store) else open_store(store)
