"""A service and its experiments, for programs that do other things while they wait: the same verbs, with `await`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from equipoise.client import calls
from equipoise.client.downloads import Download
from equipoise.client.transport import AsyncSender, Settings
from equipoise.policies.pooled_balance import policy_or_recommended

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
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


class AsyncClient:
    """A service that runs at an address, as `Client` is, in an event loop of asyncio: every verb is awaited.

    The parameters are those of `Client`. Close it, or use it in an `async with` block; each event loop needs its own.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.AsyncClient("https://experiments.example.org", key="eq_1_secret")
    AsyncClient('https://experiments.example.org')
    """

    def __init__(self, url: str, key: str | None = None, *, timeout_seconds: float = 10.0, attempts: int = 6) -> None:
        self._sender = AsyncSender(Settings(url, key, timeout_seconds, attempts))

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._sender.settings.url

    async def create(
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
    ) -> AsyncRemoteExperiment:
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
        await self._sender.send(call)
        return AsyncRemoteExperiment(self, name)

    async def open(self, name: str) -> AsyncRemoteExperiment:
        """Return the experiment of that name."""
        await self._sender.send(calls.open_experiment(name))
        return AsyncRemoteExperiment(self, name)

    async def list(self) -> Summaries:
        """Return all experiments that the key may see, oldest first."""
        return await self._sender.send(calls.list_experiments())

    async def close(self) -> None:
        """Close all connections."""
        await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"


class AsyncRemoteExperiment:
    """An experiment of a service; made by `AsyncClient.create` and `AsyncClient.open`.

    The verbs are those of `Experiment`: `await experiment.ask(unit)`, `await experiment.configuration`, and
    `async for event in experiment.events()`. See `RemoteExperiment` for what is different over a network.
    """

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.client = client
        self.name = name
        self._send = client._sender.send

    # Units

    async def ask(self, unit: str, attributes: dict[str, Any] | None = None) -> Assignment:
        """Return the arm of a unit: the one it has, or else the one the policy gives it now."""
        return await self._send(calls.ask(self.name, unit, attributes))

    async def ask_many(
        self,
        units: Iterable[str | tuple[str, dict[str, Any] | None]] | Mapping[str, dict[str, Any] | None],
    ) -> list[Assignment]:
        """Return the arms of several units.

        They are sent in groups of at most 1,000, and each group is a transaction of its own: when one is refused, those
        before it are assigned, and the same call again gives their arms.
        """
        return [answer for call in calls.ask_many(self.name, units) for answer in await self._send(call)]

    async def tell(self, unit: str, reward: float) -> ToldReward:
        """Record the reward of a unit that was assigned, however late; telling the same again changes nothing."""
        return await self._send(calls.tell(self.name, unit, reward))

    async def tell_many(self, rewards: Mapping[str, float] | Iterable[tuple[str, float]]) -> list[ToldReward]:
        """Record the rewards of several units.

        They are sent in groups of at most 1,000, and each group is a transaction of its own: if any reward is refused,
        none of its group and of those after it is recorded.
        """
        return [answer for call in calls.tell_many(self.name, rewards) for answer in await self._send(call)]

    async def correct(self, unit: str, reward: float, reason: str) -> ToldReward:
        """Put another reward in the place of the one told; the log keeps both, and the reason."""
        return await self._send(calls.correct(self.name, unit, reward, reason))

    async def assignment(self, unit: str) -> Assignment | None:
        """Return the assignment of a unit, or None if it has none; nothing is written."""
        return await self._send(calls.assignment(self.name, unit))

    async def unit(self, unit: str) -> UnitStatus | None:
        """Return a unit's assignment and what became of its reward, or None if it has none; nothing is written."""
        return await self._send(calls.unit(self.name, unit))

    # The experiment

    async def pause(self) -> None:
        """Take no new units for a while."""
        await self._send(calls.change(self.name, "pause"))

    async def resume(self) -> None:
        """Take new units again after a pause."""
        await self._send(calls.change(self.name, "resume"))

    async def stop(self) -> None:
        """Take no new units any more; rewards are still accepted."""
        await self._send(calls.change(self.name, "stop"))

    async def finish(self, *, anyway: bool = False) -> None:
        """Close the experiment: no new units, no more rewards, no corrections."""
        await self._send(calls.finish(self.name, anyway))

    async def add_arm(self, name: str, *, floor: float = 0.0) -> None:
        """Add an arm; the policy gives it what it has missed, as it would any arm with few pulls."""
        await self._send(calls.add_arm(self.name, name, floor))

    async def pause_arm(self, name: str) -> None:
        """Assign nobody to an arm for a while; the policy decides as if it did not exist."""
        await self._send(calls.change_arm(self.name, name, "pause"))

    async def resume_arm(self, name: str) -> None:
        """Assign people to an arm again after a pause."""
        await self._send(calls.change_arm(self.name, name, "resume"))

    async def retire_arm(self, name: str) -> None:
        """Assign nobody to an arm any more; rewards of those who have it still count."""
        await self._send(calls.change_arm(self.name, name, "retire"))

    async def change_weight(self, reward_weight: float) -> None:
        """Change the policy's weight between reward and accuracy, from the next decision on."""
        await self._send(calls.change_weight(self.name, reward_weight))

    async def settle(self) -> None:
        """Deal with all units whose window has passed; every ask and tell deals with some of them."""
        await self._send(calls.change(self.name, "settle"))

    # Reading

    async def describe(self) -> dict[str, Any]:
        """Return name, state, arms and settings as plain data that JSON can hold."""
        return await self._send(calls.describe(self.name))

    @property
    async def configuration(self) -> Configuration:
        """The settings as they are now."""
        return await self._send(calls.configuration(self.name))

    async def status(self) -> Status:
        """Return where the experiment stands: arms, totals, intervals, stopping rules."""
        return await self._send(calls.status(self.name))

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yield the log, from the event after this number on; it is read a page at a time."""
        while page := await self.events_page(after, calls.PAGE):
            for event in page:
                yield event
            after = page[-1].number

    async def events_page(self, after: int, limit: int) -> list[Event]:
        """Return at most so many events, from the one after this number on; a service gives 10,000 at most."""
        return await self._send(calls.events_page(self.name, after, limit))

    async def history(self, points: int = 100) -> History:
        """Return counts and means at evenly spaced events, for charts."""
        return await self._send(calls.history(self.name, points))

    async def what_if(self, reward_weight: float) -> WhatIf:
        """Return the allocation another weight would ask for now, and its price in reward and error."""
        return await self._send(calls.what_if(self.name, reward_weight))

    async def verify(self) -> Verification:
        """Replay the log from nothing, in the service, and compare every decision with what is recorded."""
        return await self._send(calls.verify(self.name))

    async def rebuild(self) -> bool:
        """Write statistics and everything else that is kept from the log anew; return whether anything changed."""
        return await self._send(calls.rebuild(self.name))

    async def export(
        self,
        target: str | os.PathLike[str] | IO[str] | IO[bytes],
        format: str | None = None,  # noqa: A002
    ) -> int:
        """Write one row per unit, with its assignment and reward, and return how many there are."""
        with Download(target, format) as download:
            await self.client._sender.download(calls.export(self.name, download.form), download)
            return download.n_rows()

    def __repr__(self) -> str:
        return f"{self.client!r}.open({self.name!r})"
