"""A service and its experiments, for programs that wait for each answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from equipoise.client import calls
from equipoise.client.downloads import Download
from equipoise.client.transport import Sender, Settings
from equipoise.policies.pooled_balance import policy_or_recommended

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import IO

    from equipoise.experiment import (
        Assignment,
        Configuration,
        Event,
        History,
        MissingReward,
        Status,
        StoppingRule,
        ToldReward,
        UnitStatus,
        Verification,
        WhatIf,
    )
    from equipoise.experiment.experiment import Summaries
    from equipoise.policies import Policy


class Client:
    """A service that runs at an address, with the experiments it has.

    What `create` and `open` return has the verbs of `Experiment` and raises its errors. A call that meets a lost
    connection, a time-out or a service that has too much to do is tried again, after waits that grow; that is safe,
    since a unit keeps its arm and a reward counts once. When all attempts have failed, `StoreUnavailable` is raised.
    Usable from several threads, and after a fork. Close it, or use it in a `with` block.

    Parameters
    ----------
    url : str
        Where the service is, such as `https://experiments.example.org`.
    key : str, optional
        What lets one in, made by `equipoise keys create`; its name stands in the log as who did it.
    timeout_seconds : float
        How long to wait for an answer before trying again; reading a whole log may take ten minutes in any case.
    attempts : int
        How often to try.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.Client("https://experiments.example.org/", key="eq_1_secret")
    Client('https://experiments.example.org')
    """

    def __init__(self, url: str, key: str | None = None, *, timeout_seconds: float = 10.0, attempts: int = 6) -> None:
        self._sender = Sender(Settings(url, key, timeout_seconds, attempts))

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._sender.settings.url

    def create(
        self,
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
    ) -> RemoteExperiment:
        """Make an experiment, as `Experiment.create` does; the policy must be one that the service knows too."""
        call = calls.create(
            name,
            arms=arms,
            policy=policy_or_recommended(policy, reward_weight),
            seed=seed,
            floor=floor,
            control=control,
            control_share=control_share,
            warm_up=warm_up,
            reward_range=reward_range,
            direction=direction,
            missing=missing,
            stopping=stopping,
            failure_probability=failure_probability,
            metadata=metadata,
        )
        self._sender.send(call)
        return RemoteExperiment(self, name)

    def open(self, name: str) -> RemoteExperiment:
        """Return the experiment of that name."""
        self._sender.send(calls.open_experiment(name))
        return RemoteExperiment(self, name)

    def list(self) -> Summaries:
        """Return all experiments that the key may see, oldest first."""
        return self._sender.send(calls.list_experiments())

    def close(self) -> None:
        """Close all connections."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


class RemoteExperiment:
    """An experiment of a service; made by `Client.create` and `Client.open`. The verbs are those of `Experiment`.

    `new` in an answer may be False although this program did it, when a first answer was lost and the call repeated.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self._send = client._sender.send

    # Units

    def ask(self, unit: str, attributes: dict[str, Any] | None = None) -> Assignment:
        """Return the arm of a unit: the one it has, or else the one the policy gives it now."""
        return self._send(calls.ask(self.name, unit, attributes))

    def ask_many(
        self,
        units: Iterable[str | tuple[str, dict[str, Any] | None]] | Mapping[str, dict[str, Any] | None],
    ) -> list[Assignment]:
        """Return the arms of several units.

        They are sent in groups of at most 1,000, and each group is a transaction of its own: when one is refused, those
        before it are assigned, and the same call again gives their arms.
        """
        return [answer for call in calls.ask_many(self.name, units) for answer in self._send(call)]

    def tell(self, unit: str, reward: float) -> ToldReward:
        """Record the reward of a unit that was assigned, however late; telling the same again changes nothing."""
        return self._send(calls.tell(self.name, unit, reward))

    def tell_many(self, rewards: Mapping[str, float] | Iterable[tuple[str, float]]) -> list[ToldReward]:
        """Record the rewards of several units.

        They are sent in groups of at most 1,000, and each group is a transaction of its own: if any reward is refused,
        none of its group and of those after it is recorded.
        """
        return [answer for call in calls.tell_many(self.name, rewards) for answer in self._send(call)]

    def correct(self, unit: str, reward: float, reason: str) -> ToldReward:
        """Put another reward in the place of the one told; the log keeps both, and the reason."""
        return self._send(calls.correct(self.name, unit, reward, reason))

    def assignment(self, unit: str) -> Assignment | None:
        """Return the assignment of a unit, or None if it has none; nothing is written."""
        return self._send(calls.assignment(self.name, unit))

    def unit(self, unit: str) -> UnitStatus | None:
        """Return a unit's assignment and what became of its reward, or None if it has none; nothing is written."""
        return self._send(calls.unit(self.name, unit))

    # The experiment

    def pause(self) -> None:
        """Take no new units for a while."""
        self._send(calls.change(self.name, "pause"))

    def resume(self) -> None:
        """Take new units again after a pause."""
        self._send(calls.change(self.name, "resume"))

    def stop(self) -> None:
        """Take no new units any more; rewards are still accepted."""
        self._send(calls.change(self.name, "stop"))

    def finish(self, *, anyway: bool = False) -> None:
        """Close the experiment: no new units, no more rewards, no corrections."""
        self._send(calls.finish(self.name, anyway))

    def add_arm(self, name: str, *, floor: float = 0.0) -> None:
        """Add an arm; the policy gives it what it has missed, as it would any arm with few pulls."""
        self._send(calls.add_arm(self.name, name, floor))

    def pause_arm(self, name: str) -> None:
        """Assign nobody to an arm for a while; the policy decides as if it did not exist."""
        self._send(calls.change_arm(self.name, name, "pause"))

    def resume_arm(self, name: str) -> None:
        """Assign people to an arm again after a pause."""
        self._send(calls.change_arm(self.name, name, "resume"))

    def retire_arm(self, name: str) -> None:
        """Assign nobody to an arm any more; rewards of those who have it still count."""
        self._send(calls.change_arm(self.name, name, "retire"))

    def change_weight(self, reward_weight: float) -> None:
        """Change the policy's weight between reward and accuracy, from the next decision on."""
        self._send(calls.change_weight(self.name, reward_weight))

    def settle(self) -> None:
        """Deal with all units whose window has passed; every ask and tell deals with some of them."""
        self._send(calls.change(self.name, "settle"))

    # Reading

    def describe(self) -> dict[str, Any]:
        """Return name, state, arms and settings as plain data that JSON can hold."""
        return self._send(calls.describe(self.name))

    @property
    def configuration(self) -> Configuration:
        """The settings as they are now."""
        return self._send(calls.configuration(self.name))

    def status(self) -> Status:
        """Return where the experiment stands: arms, totals, intervals, stopping rules."""
        return self._send(calls.status(self.name))

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the log, from the event after this number on; it is read a page at a time."""
        while page := self.events_page(after, calls.PAGE):
            yield from page
            after = page[-1].number

    def events_page(self, after: int, limit: int) -> list[Event]:
        """Return at most so many events, from the one after this number on; a service gives 10,000 at most."""
        return self._send(calls.events_page(self.name, after, limit))

    def history(self, points: int = 100) -> History:
        """Return counts and means at evenly spaced events, for charts."""
        return self._send(calls.history(self.name, points))

    def what_if(self, reward_weight: float) -> WhatIf:
        """Return the allocation another weight would ask for now, and its price in reward and error."""
        return self._send(calls.what_if(self.name, reward_weight))

    def verify(self) -> Verification:
        """Replay the log from nothing, in the service, and compare every decision with what is recorded."""
        return self._send(calls.verify(self.name))

    def rebuild(self) -> bool:
        """Write statistics and everything else that is kept from the log anew; return whether anything changed."""
        return self._send(calls.rebuild(self.name))

    def export(
        self,
        target: str | os.PathLike[str] | IO[str] | IO[bytes],
        format: str | None = None,  # noqa: A002
    ) -> int:
        """Write one row per unit, with its assignment and reward, and return how many there are."""
        with Download(target, format) as download:
            self.client._sender.download(calls.export(self.name, download.form), download)
            return download.n_rows()

    def __repr__(self) -> str:
        return f"{self.client!r}.open({self.name!r})"
