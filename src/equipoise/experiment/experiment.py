"""A durable experiment: ask and tell by unit, in a store or a service that survives crashes and retries."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, Self, TypeAlias

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.experiment import commands
from equipoise.experiment.course import checked_instant, checked_period
from equipoise.experiment.event_kinds import selection
from equipoise.experiment.full_report import FullReport
from equipoise.experiment.names import LONGEST_UNIT, MOST_LISTED, checked_text, checked_unit
from equipoise.experiment.records import (
    UNIT_STATES,
    Assignment,
    Comparison,
    Event,
    ExperimentSummary,
    Fidelity,
    Health,
    History,
    Outlook,
    Prices,
    Report,
    Status,
    Timeline,
    ToldReward,
    UnitPage,
    UnitStatus,
    Verification,
    WhatIf,
)

if TYPE_CHECKING:
    from equipoise.experiment.backends import Backend, StoreBackend
    from equipoise.experiment.configuration import Configuration
    from equipoise.experiment.missing_rewards import MissingReward
    from equipoise.experiment.stopping import StoppingRule
    from equipoise.policies import Policy
    from equipoise.store import Store


def asked_of_report(
    control: str | None, adjust: Sequence[str] | None, by: Sequence[str], confidence: float | None
) -> dict[str, Any]:
    """Return what a report is asked for, without what is not given."""
    for name, value in (("adjust", adjust), ("by", by)):
        if isinstance(value, str):
            raise InvalidInput.of(name, "must be a list of attributes", value)
    given = {"control": control, "adjust": adjust, "by": by, "confidence": confidence}
    return {name: value for name, value in given.items() if value is not None}


# Within the class, `list` is its method.
Assignments: TypeAlias = list[Assignment]
ToldRewards: TypeAlias = list[ToldReward]
Answers: TypeAlias = list[Any]
Events: TypeAlias = list[Event]
Summaries: TypeAlias = list[ExperimentSummary]

_PAGE = 1_000


class Experiment:
    """An experiment in a store. Make one with `create`, come back to it with `open`.

    Every method that changes something returns when the change is durable. All are idempotent: a unit keeps its arm, a
    reward counts once. Any number of processes and threads may work on one experiment. For an experiment of a service,
    use `Client`: its experiments have the same methods.

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

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def name(self) -> str:
        """Its name, unique in the store."""
        return self._backend.name

    @property
    def who(self) -> str | None:
        """Who makes changes with this object, for the log; in a service that is the name of the key."""
        return self._backend.who

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
        information_kept: float | None = None,
        information_about: str | None = None,
        smallest_difference: float | None = None,
        half_width: float | None = None,
        units: int | None = None,
        drift: str | None = None,
        seed: int | None = None,
        floor: float | Sequence[float] | Mapping[str, float] = 0.0,
        control: str | None = None,
        control_share: float = 0.0,
        warm_up: int = 0,
        most_units: int | None = None,
        reward_range: tuple[float | None, float | None] | None = None,
        reward_cap: float | None = None,
        direction: str = "maximise",
        missing: MissingReward | None = None,
        stopping: StoppingRule | Sequence[StoppingRule] = (),
        failure_probability: float = 0.05,
        covariates: Sequence[str] = (),
        description: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        paused: bool = False,
        who: str | None = None,
    ) -> Experiment:
        """Make an experiment; what is given here cannot change later, except the dial, the arms and the description.

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
        information_kept : float, optional
            The dial in other words, instead of `reward_weight`: the most reward such that the experiment stays as
            accurate as the best design with this share of the units. 1 is all accuracy, towards 0 all reward; 1 divided
            by it is the price in units.
        information_about : {"average", "every-arm", "best-arm"}, optional
            What that accuracy is about: the average error of the arms (the default), every arm, or which arm is best.
        smallest_difference : float, optional
            For "best-arm": differences between means below this count as this; a twentieth of the typical spread by
            default.
        half_width, units : float and int, optional
            A goal instead of `information_kept`: the half-width that every arm's confidence interval should have after
            this many units; with ``information_about="average"``, that their average should have. It becomes the share
            of the information that it takes if the arms spread as widely as `reward_range` allows (half of the range
            each); a goal out of reach is refused (`GoalOutOfReach`).
        drift : {"none", "declared", "detected"}, optional
            What the recommended policy does about rewards that rise or fall with time for all arms, by which the arm
            assigned last looks best: nothing (the default), average every arm over the same units, or do so while a
            check finds that rewards change. Without such changes the second costs accuracy; the third hardly does.
        seed : int, optional
            What the random numbers depend on; drawn and logged if it is not given.
        floor : float, one per arm, or by arm's name
            Share of assignments kept for each arm whatever the policy says. Shares are added: an arm's probability is
            its share plus what all shares leave, times the policy's probability.
        control, control_share
            An arm and the share to keep for it, if that is more than its floor.
        warm_up : int
            Every arm gets this many units first, in random order.
        most_units : int, optional
            Hard limit: nobody is assigned after this many units. (The stopping rule `Budget` only reports.)
        reward_range : (float, float), optional
            Lowest and highest reward; others are refused, and intervals become exact instead of asymptotic. One end may
            be open, None or infinite: ``(0, None)`` for amounts that are never negative.
        reward_cap : float, optional
            A larger reward counts as this in the estimates, so that rare huge rewards cannot move a mean; the log keeps
            it as reported. Means are then those of min(reward, cap), in either direction.
        direction : {"maximise", "minimise"}
            Whether large or small rewards are good.
        missing : MissingReward, optional
            `WaitForReward`, `DefaultReward` or `DropUnit`; the first by default.
        stopping : StoppingRule or several
            `Budget`, `Deadline`, `Precision`; `status` reports them, nothing acts on them.
        failure_probability : float
            One minus the confidence of each arm's interval.
        covariates : sequence of str
            Attributes of units, known when they are assigned, by which reports will adjust and split: declared here,
            before there are data. `ask` need not give them.
        description : dict, optional
            What it is about, in words: any of `title`, `question`, `outcome` (what people do whose reward is 1, such
            as "came to the appointment", or what other rewards measure), `reward_unit` (such as "points"), `owner`,
            and `arms`, a dict that says what each arm is. `change_description` changes it.
        metadata : dict, optional
            Anything to keep with the experiment.
        paused : bool, default False
            Whether it starts paused: nobody is assigned before `resume`.
        who : str, optional
            Who does this, for the log; also for what is done with the object returned.
        """
        left = ("cls", "store", "name", "paused", "who")
        settings = {key: value for key, value in locals().items() if key not in (*left, "left")}
        from equipoise.experiment.backends import StoreBackend
        from equipoise.experiment.configuration import checked_settings

        configuration, pairs = checked_settings(**settings)
        return cls(StoreBackend.create(store, name, configuration, pairs, who, paused=checks.boolean("paused", paused)))

    @classmethod
    def open(cls, store: Store | str, name: str, *, who: str | None = None) -> Experiment:
        """Return the experiment of that name."""
        from equipoise.experiment.backends import StoreBackend

        return cls(StoreBackend.open(store, name, who))

    @classmethod
    def list(cls, store: Store | str) -> Summaries:
        """Return all experiments of a store, oldest first."""
        from equipoise.experiment.backends import list_experiments

        return list_experiments(store)

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
        found: Assignment = self._backend.run(commands.Ask(unit, attributes))
        return found

    def ask_many(
        self, units: Iterable[str | tuple[str, dict[str, Any] | None]] | Mapping[str, dict[str, Any] | None]
    ) -> Assignments:
        """Return the arms of several units: what as many single asks would give.

        A store assigns them in one transaction, a service in one for every 1,000 units.

        Attributes to log come as pairs of a unit and its attributes, or as a mapping from one to the other.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> [one.arm for one in experiment.ask_many(["ada", ("bob", {"class": "4b"})])]
        ['a', 'b']
        """
        return self._backend.run_all(commands.Ask.many(units))

    def tell(self, unit: str, reward: float) -> ToldReward:
        """Record the reward of a unit that was assigned, however late; telling the same again changes nothing."""
        found: ToldReward = self._backend.run(commands.Tell(unit, reward))
        return found

    def tell_many(self, rewards: Mapping[str, float] | Iterable[tuple[str, float]]) -> ToldRewards:
        """Record the rewards of several units, as pairs, a mapping or a pandas Series; all or none.

        A store records them in one transaction, a service in one for every 1,000 units.
        """
        return self._backend.run_all(commands.Tell.many(rewards))

    def correct(self, unit: str, reward: float, reason: str) -> ToldReward:
        """Replace a reward; the log keeps both, and the reason."""
        found: ToldReward = self._backend.run(commands.Correct(unit, reward, reason))
        return found

    def withdraw(self, unit: str, reason: str) -> UnitStatus:
        """Take a unit out of the estimates for good, for example because a person withdrew consent.

        Its reward no longer counts, and no other is accepted. The log keeps that it was withdrawn, and why; decisions
        taken before stay as they are.
        """
        found: UnitStatus = self._backend.run(commands.Withdraw(unit, reason))
        return found

    def erase(self, unit: str) -> None:
        """Erase the name and the attributes of a withdrawn unit, and the reasons given about it, from the log.

        The log still verifies. In a finished experiment any unit can be erased; its reward stays in the estimates. This
        cannot be undone, and does not reach backups, copies and exports.
        """
        self._backend.erase(checked_unit(unit))

    def assignment(self, unit: str) -> Assignment | None:
        """Return the assignment of a unit, or None if it has none; nothing is written."""
        found = self._backend.unit(checked_unit(unit))
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
        return self._backend.unit(checked_unit(unit))

    def units(
        self, state: str | None = None, *, prefix: str | None = None, limit: int = 50, after: str | None = None
    ) -> UnitPage:
        """Return a page of units: those in a state, those whose names begin with a prefix, or all.

        Nothing is written, and a page takes as long with a million units as with a few.

        Parameters
        ----------
        state : {"waiting", "held", "counted", "overdue", "defaulted", "dropped", "withdrawn"}, optional
            As in `UnitStatus`.
        prefix : str, optional
            How the names of the units begin.
        limit : int
            Most units to return, at most 1,000.
        after : str, optional
            The `next` of the page before, with the same `state` and `prefix`.

        Returns
        -------
        UnitPage
            Waiting, held and overdue units, those who wait longest first; others in the order of their names.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> told = experiment.tell(experiment.ask("ada").unit, 0.75)
        >>> asked = experiment.ask_many(["amy", "bob", "ann"])
        >>> [one.unit for one in experiment.units("waiting").units]
        ['amy', 'bob', 'ann']
        >>> [(one.unit, one.state) for one in experiment.units(prefix="a").units]
        [('ada', 'counted'), ('amy', 'waiting'), ('ann', 'waiting')]
        """
        if state is not None:
            state = checks.one_of("state", state, UNIT_STATES)
        if prefix is not None:
            prefix = checked_text("prefix", prefix, LONGEST_UNIT, trimmed=False)
        return self._backend.units(state, prefix, checks.whole_number("limit", limit, 1, MOST_LISTED), after)

    def unit_events(self, unit: str) -> Events:
        """Return the events of a unit in the order of the log; none if it was never assigned, or was erased.

        Of a unit with more than 10,000 events, which it takes as many corrections for, the last ones.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> told = experiment.tell(experiment.ask("ada").unit, 75.0)
        >>> told = experiment.correct("ada", 0.75, "in percent")
        >>> [(event.number, event.kind, event.reward) for event in experiment.unit_events("ada")]
        [(2, 'assigned', None), (3, 'rewarded', 75.0), (4, 'corrected', 0.75)]
        """
        return self._backend.unit_events(checked_unit(unit))

    # The experiment

    # Every change takes a `reason`, which the log keeps, and `expected_change`: the number of an event, after which no
    # other change may have come (else `StaleChange`). A change that changes nothing is not logged.

    def pause(self, *, reason: str | None = None, expected_change: int | None = None) -> None:
        """Take no new units for a while."""
        self._backend.run(commands.Pause(reason=reason, expected_change=expected_change))

    def resume(self, *, reason: str | None = None, expected_change: int | None = None) -> None:
        """Take new units again after a pause."""
        self._backend.run(commands.Resume(reason=reason, expected_change=expected_change))

    def stop(self, *, reason: str | None = None, expected_change: int | None = None) -> None:
        """Take no new units any more; rewards are still accepted."""
        self._backend.run(commands.Stop(reason=reason, expected_change=expected_change))

    def finish(self, *, anyway: bool = False, reason: str | None = None, expected_change: int | None = None) -> None:
        """Close the experiment: no new units, no more rewards, no corrections.

        Units whose window has passed are settled first. While windows of other units are open, this is refused with
        `WindowsOpen` (`RewardsHeld` if rewards are held back), which says when the last one passes: `stop` the
        experiment first and finish it then. With `anyway` it is finished at once: rewards of those units are refused,
        and held ones stay outside the estimates for ever.
        """
        self._backend.run(commands.Finish(bool(anyway), reason=reason, expected_change=expected_change))

    def add_arm(
        self, name: str, *, floor: float = 0.0, reason: str | None = None, expected_change: int | None = None
    ) -> None:
        """Add an arm; after its warm-up and forcing, the policy gives it its share of the units that follow."""
        self._backend.run(commands.AddArm(name, floor, reason=reason, expected_change=expected_change))

    def pause_arm(self, name: str, *, reason: str | None = None, expected_change: int | None = None) -> None:
        """Assign no units to an arm for a while; the policy decides as if it did not exist."""
        self._backend.run(commands.PauseArm(name, reason=reason, expected_change=expected_change))

    def resume_arm(self, name: str, *, reason: str | None = None, expected_change: int | None = None) -> None:
        """Assign units to an arm again after a pause."""
        self._backend.run(commands.ResumeArm(name, reason=reason, expected_change=expected_change))

    def retire_arm(self, name: str, *, reason: str | None = None, expected_change: int | None = None) -> None:
        """Assign no units to an arm any more; rewards of units that have it still count."""
        self._backend.run(commands.RetireArm(name, reason=reason, expected_change=expected_change))

    def change_weight(
        self, reward_weight: float, *, reason: str | None = None, expected_change: int | None = None
    ) -> None:
        """Change the policy's weight between reward and accuracy, from the next decision on."""
        self._backend.run(commands.ChangeWeight(reward_weight, reason=reason, expected_change=expected_change))

    def change_dial(
        self,
        *,
        reward_weight: float | None = None,
        information_kept: float | None = None,
        information_about: str | None = None,
        smallest_difference: float | None = None,
        half_width: float | None = None,
        units: int | None = None,
        reason: str | None = None,
        expected_change: int | None = None,
    ) -> None:
        """Set the policy's dial between reward and accuracy in any way, from the next decision on.

        Parameters
        ----------
        reward_weight : float, optional
            The weight, from accuracy (0) to reward (1).
        information_kept : float, optional
            Or the share of the information to keep, from reward (towards 0) to accuracy (1); see `create`.
        information_about : {"average", "every-arm", "best-arm"}, optional
            What it is about; if that is not given, what it was about before, or else "average". A goal is about
            "every-arm" unless it is stated to be about the "average".
        smallest_difference : float, optional
            For "best-arm": differences between means below this count as this.
        half_width, units : float and int, optional
            Or a goal: the half-width that every arm's confidence interval (or the average) should have after this many
            units, those so far included. It becomes the share of the information that it takes by the present
            estimates; a goal out of reach is refused (`GoalOutOfReach`).
        reason : str, optional
            Why, for the log.
        expected_change : int, optional
            Number of an event: refuse this if the experiment was changed after it (`StaleChange`).

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], reward_weight=0.8, seed=1)
        >>> experiment.change_dial(information_kept=0.7, information_about="every-arm", reason="every arm counts")
        >>> experiment.configuration.policy
        PooledBalance(information_kept=0.7, information_about='every-arm', tracking='windowed')
        """
        stated = reward_weight, information_kept, information_about, smallest_difference, half_width, units
        self._backend.run(commands.ChangeDial(*stated, reason=reason, expected_change=expected_change))

    def change_description(
        self,
        *,
        title: str | None = None,
        question: str | None = None,
        outcome: str | None = None,
        reward_unit: str | None = None,
        owner: str | None = None,
        arms: Mapping[str, str] | None = None,
        reason: str | None = None,
        expected_change: int | None = None,
    ) -> None:
        """Change what the experiment is about, in words; also when it is finished, as no measurement changes.

        Parameters
        ----------
        title, question, outcome, reward_unit, owner : str, optional
            As in the `description` of `create`; None leaves a text as it is, and "" removes it.
        arms : dict of str by arm, optional
            What these arms are; others stay as they are.
        reason : str, optional
            Why, for the log.
        expected_change : int, optional
            Number of an event: refuse this if the experiment was changed after it (`StaleChange`).

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create(
        ...     "memory:", "mail", arms=["plain", "prize"], reward_weight=0.5, description={"title": "Reminders"}
        ... )
        >>> experiment.change_description(outcome="came to the appointment", arms={"prize": "a draw of book tokens"})
        >>> experiment.describe()["description"]
        {'title': 'Reminders', 'outcome': 'came to the appointment', 'arms': {'prize': 'a draw of book tokens'}}
        """
        texts = title, question, outcome, reward_unit, owner, None if arms is None else dict(arms)
        self._backend.run(commands.ChangeDescription(*texts, reason=reason, expected_change=expected_change))

    def note(self, text: str, kind: str = "note") -> None:
        """Write a note into the log, or a decision that was taken; also when the experiment is finished.

        Parameters
        ----------
        text : str
            What to remember, in one line or several; nothing that must be erased one day, such as a person's name.
        kind : {"note", "decision"}
            Whether it is a decision: reports show it beside the results.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), who="Ada")
        >>> experiment.note("From now on everybody gets 'b'.", "decision")
        >>> from equipoise.experiment import sentence_of
        >>> [sentence_of(event) for event in experiment.changes()]
        ["Ada decided: 'From now on everybody gets 'b'.'", 'Ada created the experiment with 2 arms']
        """
        self._backend.run(commands.Note(text, kind))

    def mute(self, check: str, *, until: datetime | str, reason: str, arm: str | None = None) -> None:
        """Mute the alerts of a check until an instant; the log keeps that, and the reason.

        Parameters
        ----------
        check : str
            The check, as `health` names it: "missing by arm".
        until : datetime or str
            Until when, with a zone; at most a year from now.
        reason : str
            Why that does not matter meanwhile, for the log.
        arm : str, optional
            Only alerts about this arm.

        Examples
        --------
        >>> import equipoise as eq
        >>> from datetime import UTC, datetime, timedelta
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), who="Ada")
        >>> experiment.mute("enrolment", until=datetime.now(UTC) + timedelta(days=14), reason="school holidays")
        >>> experiment.changes(1)[0].kind
        'muted'
        """
        instant = until.isoformat() if isinstance(until, datetime) else until
        self._backend.run(commands.Mute(check, instant, reason, arm))

    def unmute(self, check: str, *, arm: str | None = None, reason: str | None = None) -> None:
        """Let the alerts of a check be told again."""
        self._backend.run(commands.Unmute(check, reason, arm))

    def settle(self) -> None:
        """Deal with all units whose window has passed; every ask and tell deals with some of them."""
        self._backend.run(commands.Settle())

    # Reading

    def as_of(self, event: int) -> Self:
        """Return the experiment as it was right after an event, to be read; nothing of it can be changed.

        Status, comparison, report, timeline and the rest say what they said then, at the time of the event: also where
        rewards were corrected or arms were added since. The log is replayed up to the event, some million events in a
        second, and once for several calls.

        Parameters
        ----------
        event : int
            Its number in the log, as events and reports have it.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> told = experiment.tell(experiment.ask("ada").unit, 75.0)
        >>> told = experiment.correct("ada", 0.75, "in percent")
        >>> [one.status().average_reward for one in (experiment.as_of(3), experiment)]
        [75.0, 0.75]
        """
        twin = copy.copy(self)
        twin._backend = self._backend.as_of(checks.whole_number("event", event, 1, checks.LARGEST_COUNT))
        return twin

    @property
    def configuration(self) -> Configuration:
        """The settings as they are now."""
        return self._backend.configuration()

    def describe(self) -> dict[str, Any]:
        """Return name, state, arms, description and settings as plain data that JSON can hold.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> experiment.describe()["arms"]
        [{'name': 'a', 'state': 'active', 'floor': 0.0}, {'name': 'b', 'state': 'active', 'floor': 0.0}]
        """
        return self._backend.describe()

    def status(self) -> Status:
        """Return the current state: arms, totals, intervals, stopping rules.

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
        return self._backend.status()

    def events(
        self, after: int = 0, *, before: int | None = None, kinds: Sequence[str] = (), newest_first: bool = False
    ) -> Iterator[Event]:
        """Yield the log, from the event after this number on; the other parameters are those of `events_page`."""
        while page := self.events_page(after, _PAGE, before=before, kinds=kinds, newest_first=newest_first):
            yield from page
            if newest_first:
                before = page[-1].number
            else:
                after = page[-1].number

    def events_page(
        self,
        after: int,
        limit: int,
        *,
        before: int | None = None,
        kinds: Sequence[str] = (),
        newest_first: bool = False,
    ) -> Events:
        """Return up to `limit` events of the log; a service gives 10,000 at most.

        Parameters
        ----------
        after : int
            Only events after the one of this number.
        limit : int
            How many at most.
        before : int, optional
            Only events before the one of this number.
        kinds : sequence of str
            Only events of these kinds, such as "corrected"; of all kinds by default.
        newest_first : bool
            Whether to begin at the end; then go on with `before` the last number of a page.
        """
        last, most = checks.whole_number("after", after, 0), checks.whole_number("limit", limit, 1)
        return self._backend.events_page(last, most, selection(before, kinds, newest_first))

    def changes(self, limit: int = 50, *, before: int | None = None, kinds: Sequence[str] = ()) -> Events:
        """Return the latest events that are not about a unit, newest first: changes, notes, decisions.

        However long the log is, this is quick. `before` is the number of the last event of the page before.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], reward_weight=0.8, seed=1)
        >>> experiment.ask("ada").new
        True
        >>> experiment.change_weight(0.9, reason="b is clearly ahead")
        >>> [(event.number, event.kind, event.details) for event in experiment.changes(1)]
        [(3, 'weight_changed', {'reward_weight': 0.9, 'was': 0.8, 'reason': 'b is clearly ahead'})]
        """
        most = checks.whole_number("limit", limit, 1)
        return self._backend.changes(most, selection(before, kinds))

    def history(self, points: int = 100) -> History:
        """Return counts and means at evenly spaced events, for charts."""
        return self._backend.history(checks.whole_number("points", points, 1, 100_000))

    def timeline(self, every: str = "day", since: datetime | str | None = None) -> Timeline:
        """Return what happened by period and arm: units, rewards, means, shares, delays and missing rewards.

        It is read from sums by hour that readers of a store keep beside its log, so it is quick for long logs too.

        Parameters
        ----------
        every : {"hour", "6 hours", "day", "week"}
            Length of a period; days begin at midnight in UTC, weeks on Mondays.
        since : datetime or str, optional
            The period that this instant is in is the first one; by default that of the creation.

        Examples
        --------
        >>> import equipoise as eq
        >>> policy = eq.Fixed(allocation=(0.75, 0.25))
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=policy, seed=1)
        >>> for unit, reward in enumerate([1.0, 2.0, 3.0]):
        ...     told = experiment.tell(experiment.ask(f"student-{unit}").unit, reward)
        >>> timeline = experiment.timeline()
        >>> timeline.assigned.tolist(), timeline.mean.tolist(), timeline.share_wanted.tolist()
        ([[2, 1]], [[2.0, 2.0]], [[0.75, 0.25]])
        """
        return self._backend.timeline(checked_period(every), checked_instant("since", since))

    def outlook(self) -> Outlook:
        """Return how many people come a day, and when stopping rules will be met if everything goes on as it does.

        Examples
        --------
        >>> import equipoise as eq
        >>> rules = [eq.Budget(units=100), eq.Decided()]
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], reward_weight=0.5, stopping=rules)
        >>> for rule in experiment.outlook().rules:
        ...     print(rule.rule, rule.people, "-", rule.reason)
        budget 100 - it is too early to know how many people come a day
        decided None - it depends on how different the arms turn out to be
        """
        return self._backend.outlook()

    def what_if(
        self,
        reward_weight: float | None = None,
        *,
        information_kept: float | None = None,
        information_about: str | None = None,
        smallest_difference: float | None = None,
        half_width: float | None = None,
        units: int | None = None,
        more_units: int | None = None,
    ) -> WhatIf:
        """Return the allocation another dial would ask for now, and its price in reward, error and precision.

        The parameters are those of `change_dial`; nothing is changed. `more_units` is after how many further units
        the half-widths of `status` are predicted; as many as there have been by default.

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
        >>> other = experiment.what_if(information_kept=0.5)
        >>> round(other.reward_weight, 3), {arm: round(share, 3) for arm, share in other.allocation.items()}
        (0.81, {'a': 0.116, 'b': 0.884})
        >>> {arm: round(width, 2) for arm, width in experiment.what_if(0.0, more_units=400).half_widths.items()}
        {'a': 0.18, 'b': 0.18}
        """
        stated = reward_weight, information_kept, information_about, smallest_difference, half_width, units
        dial = commands.ChangeDial(*stated).stated()
        if more_units is not None:
            dial["more_units"] = checks.whole_number("more_units", more_units, 0, checks.LARGEST_COUNT)
        return self._backend.what_if(dial)

    def prices(self, *, people_per_day: float | None = None) -> Prices:
        """Return what each position of the dial gives people and costs, on the present estimates.

        Positions lie evenly along the share of the best arm, and one of them is the present dial. Gains have ranges
        that hold the truth in 8 of 10 cases. `people_per_day` is the pace that days are computed by; by default that of
        the last seven days, as in `outlook`.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], reward_weight=0.5, seed=1)
        >>> experiment.prices().needs
        "needs 4 rewards of each arm; 'a' has 0"
        >>> for unit in range(200):
        ...     one = experiment.ask(f"student-{unit}")
        ...     told = experiment.tell(one.unit, unit % 2 + 0.25 * (one.arm == "b"))
        >>> prices = experiment.prices()
        >>> prices.best, len(prices.positions), prices.positions[prices.present].dial
        ('b', 41, {'reward_weight': 0.5})
        >>> for preset in prices.presets:
        ...     position = prices.positions[preset.position]
        ...     print(preset.name, position.dial, position.next_100, round(position.people_ratio, 2))
        costs nothing {'reward_weight': 0.17} (48, 52) 0.82
        balanced {'reward_weight': 0.63} (33, 67) 1.18
        mostly reward {'reward_weight': 0.87} (17, 83) 2.33
        equal shares {'reward_weight': 0.0} (50, 50) 0.78
        """
        settings: dict[str, Any] = {}
        if people_per_day is not None:
            settings["people_per_day"] = checks.number_between(
                "people_per_day", people_per_day, 0, checks.LARGEST_COUNT, open_low=True
            )
        return self._backend.prices(settings)

    def compare(
        self,
        *,
        control: str | None = None,
        all_pairs: bool = False,
        arm: str | None = None,
        other: str | None = None,
        confidence: float | None = None,
        guaranteed: bool = False,
    ) -> Comparison:
        """Compare the arms: which differ and by how much, which may still be best, what choosing one can cost.

        Everything holds at all times, however often it is read, and all differences hold together.

        Parameters
        ----------
        control : str, optional
            Compare the other arms with this one; the experiment's control, if it has one, unless `all_pairs` is set.
        all_pairs : bool, default False
            Whether to compare all pairs although there is a control.
        arm, other : str, optional
            Compare this pair only. Declare it before you look, or the interval is too narrow.
        confidence : float, optional
            Of all differences together; 1 minus the experiment's failure probability by default.
        guaranteed : bool, default False
            Whether differences shall hold for any rewards in the declared range, not asymptotically; they are wider.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create(
        ...     "memory:", "mail", arms=["plain", "prize"], policy=eq.Uniform(), seed=1, reward_range=(0, 1)
        ... )
        >>> for i, one in enumerate(experiment.ask_many([f"person-{i}" for i in range(400)])):
        ...     told = experiment.tell(one.unit, float(i % 10 < (3 if one.arm == "plain" else 6)))
        >>> found = experiment.compare()
        >>> found.sentences, found.best
        (("'prize' is the best arm: better than 'plain', by 0.03 to 0.36.",), 'prize')
        >>> [pair] = found.differences
        >>> pair.arm, pair.other, round(pair.difference, 2), round(pair.p_value, 5), pair.verdict
        ('plain', 'prize', -0.2, 0.00589, 'worse')
        """
        settings = {"control": control, "arm": arm, "other": other, "confidence": confidence}
        given = {name: value for name, value in settings.items() if value is not None}
        flags = {name: True for name, wanted in (("all_pairs", all_pairs), ("guaranteed", guaranteed)) if wanted}
        return self._backend.compare(given | flags)

    def report(
        self,
        *,
        control: str | None = None,
        adjust: Sequence[str] | None = None,
        by: Sequence[str] = (),
        confidence: float | None = None,
    ) -> Report:
        """Return everything that can be said of the experiment, with checks of what it assumes, from its log.

        Besides the comparison of `compare`: intervals of ordinary width where a budget was declared and reached,
        differences over the same people if rewards change over time, adjusted for attributes, by subgroups, what the
        missing rewards could change, and whether arms were assigned as recorded.

        Parameters
        ----------
        control : str, optional
            The arm that others are compared with; the experiment's control by default.
        adjust : sequence of str, optional
            Attributes of units whose effect on rewards is taken out; those declared as covariates by default.
        by : sequence of str
            Attributes to compare arms within the values of. Those not declared as covariates are marked exploratory.
        confidence : float, optional
            Of all intervals of one kind together; 1 minus the experiment's failure probability by default.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create(
        ...     "memory:", "mail", arms=["plain", "prize"], reward_weight=0.5, seed=1, reward_range=(0, 1)
        ... )
        >>> for i, one in enumerate(experiment.ask_many([f"person-{i}" for i in range(300)])):
        ...     told = experiment.tell(one.unit, float(i % 10 < (3 if one.arm == "plain" else 6)))
        >>> report = experiment.report()
        >>> print(report.sentences[0])
        'prize' is the best arm: better than 'plain', by 0.17 to 0.53.
        >>> [check.name for check in report.checks if check.speaks]
        []
        >>> print(report.at_end.refused[0].partition(";")[0])
        Enrolment did not end at a number of people declared beforehand
        """
        return self._backend.report(asked_of_report(control, adjust, by, confidence))

    def full_report(
        self,
        *,
        control: str | None = None,
        adjust: Sequence[str] | None = None,
        by: Sequence[str] = (),
        confidence: float | None = None,
        log: bool = True,
        verify: bool = True,
    ) -> FullReport:
        """Return everything about the experiment as of one event: what a page to print or to keep shows.

        That is status, report, timeline, changes with their reasons, decisions, and the comparison with the plan it
        was made from. ``equipoise report NAME --out report.html`` writes a page of it that opens without a network.

        Parameters
        ----------
        control, adjust, by, confidence
            As in `report`.
        log : bool, default True
            Whether to read the log, for the checks and whatever else `report` has besides `compare`. Without it and
            `verify`, a report takes no longer for a long log than for a short one.
        verify : bool, default True
            Whether to replay the whole log as `verify` does, and to say so in the report; it takes longer then.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create(
        ...     "memory:", "mail", arms=["plain", "prize"], reward_weight=0.5, seed=1, reward_range=(0, 1)
        ... )
        >>> for i, one in enumerate(experiment.ask_many([f"person-{i}" for i in range(300)])):
        ...     told = experiment.tell(one.unit, float(i % 10 < (3 if one.arm == "plain" else 6)))
        >>> experiment.note("From now on everybody gets 'prize'.", "decision")
        >>> found = experiment.full_report()
        >>> found.event, found.status.n_assigned, found.verification.n_events, [one.kind for one in found.changes]
        (602, 300, 602, ['created', 'noted'])
        >>> experiment.as_of(301).full_report(verify=False).report.n_rewarded
        0
        """
        asked = asked_of_report(control, adjust, by, confidence)
        left_out = {name: False for name, wanted in (("log", log), ("verify", verify)) if not wanted}
        return self._backend.full_report(asked | left_out)

    def fidelity(self) -> Fidelity:
        """Compare the experiment with the plan it was made from: what left the range it was planned to lie in.

        Raises `InvalidInput` if it was not made from a plan.
        """
        return self._backend.fidelity()

    def health(self) -> Health:
        """Check whether the experiment is well: rewards that are missing or late, people who stopped coming, and more.

        Each check has a state, a sentence, a number and what it would be if nothing were the matter. What is a problem
        or worth a note opens an alert, once, and closes it when it is over; see the page on alerts.

        Examples
        --------
        >>> import equipoise as eq
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> experiment.health().sentence
        'Nothing is known to be wrong. Most checks begin after 24 hours and 100 people.'
        """
        return self._backend.health()

    def verify(self) -> Verification:
        """Check that nothing was lost or changed.

        Checks the database itself, replays the log from nothing and compares every decision, probability and statistic
        with what is recorded, recomputes the hash of every event, and looks up every unit as `ask` would. Raises
        `VerificationFailed`, which names the first difference.
        """
        return self._backend.verify()

    def rebuild(self) -> bool:
        """Restore from the log everything that is kept beside it; return whether anything changed.

        If so, that is logged too, and other programs that use the experiment reload it.
        """
        return self._backend.rebuild()

    def delete(self) -> None:
        """Delete an experiment that was made by mistake, with its log; one that has rewards is refused (`HasRewards`).

        This cannot be undone. Its assignments are forgotten: units asked for again, in an experiment of the same name,
        may get another arm.
        """
        self._backend.delete()

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
        return self._backend.export(target, format)

    # In a store only

    @property
    def store(self) -> Store:
        """The store it lives in."""
        return self._stored.store

    @property
    def number(self) -> int:
        """The store's number for it."""
        return self._stored.number

    def apply(self, requests: Iterable[commands.Request]) -> Answers:
        """Run commands in the order given, in one transaction, and return their results.

        The result of a command that is refused is its error; the others are not affected.

        Examples
        --------
        >>> import equipoise as eq
        >>> from equipoise.experiment import Ask, Tell
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        >>> answers = experiment.apply([Ask("x"), Tell("y", 1.0), Ask("y"), Tell("y", 1.0)])
        >>> [type(answer).__name__ for answer in answers]
        ['Assignment', 'UnknownUnit', 'Assignment', 'ToldReward']
        """
        return self._stored.apply(list(requests), together=False)

    def apply_all(self, requests: Iterable[commands.Request]) -> Answers:
        """Run commands in the order given, all or none: raise the error of the first that is refused."""
        return self._stored.apply(list(requests), together=True)

    def copy_to(self, store: Store | str, *, progress: Callable[[int, int], None] | None = None) -> Experiment:
        """Copy the experiment with its whole log to another store, where it can go on, and return it there.

        All of it is there when this returns; if it raises, or is interrupted, nothing is. `progress` is called now and
        then with the number of events copied and of all.
        """
        return Experiment(self._stored.copy_to(store, progress))

    @property
    def _stored(self) -> StoreBackend:
        from equipoise.experiment.backends import StoreBackend

        if not isinstance(self._backend, StoreBackend):
            raise InvalidInput(
                f"this needs the store of experiment {self.name!r}; got {self!r}, which knows only the service",
                hint="open the store itself, on the machine where the service runs",
            )
        return self._backend

    def __repr__(self) -> str:
        return f"Experiment.open({self.store!r}, {self.name!r})"
