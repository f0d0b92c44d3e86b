"""The two verbs that are called all day, without the machinery of the other routes.

Only requests with nothing wrong about them are dealt with here. Everything else is left to the routes of the
application, which are the same for every verb, so that there is one place that says what is wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote_to_bytes

import msgspec

from equipoise.experiment import Ask, Tell
from equipoise.experiment.names import LONGEST_UNIT
from equipoise.service.bodies import may_be_deep, repeated_name
from equipoise.service.keys import ADMIN, ASSIGNER

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from datetime import datetime

    from equipoise.experiment import Assignment, Request, ToldReward
    from equipoise.service.middleware import Exchange
    from equipoise.service.service import Core

ASSIGN, REWARD = "/experiments/{name}/assignments", "/experiments/{name}/assignments/{unit}/reward"


_MOST_BYTES = 20_000
"""Larger bodies, with attributes of many kilobytes, take longer than others should wait."""


class AskBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request for an arm."""

    unit: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_UNIT)]
    attributes: dict[str, Any] | None = None


class RewardBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a reward."""

    reward: float


class AssignmentAnswer(msgspec.Struct):
    """The fields of an `Assignment`, in its order."""

    unit: str
    arm: str
    number: int
    probability: float
    forced: bool
    at: str
    new: bool


class RewardAnswer(msgspec.Struct):
    """The fields of a `ToldReward`, in its order."""

    unit: str
    arm: str
    reward: float
    counted: bool
    new: bool


_ask_body, _reward_body = msgspec.json.Decoder(AskBody), msgspec.json.Decoder(RewardBody)
_encode = msgspec.json.Encoder().encode


class LeanRoutes:
    """Assign and reward."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def match(self, method: str, raw_path: bytes) -> tuple[str, str, str] | None:
        """Return route, experiment and unit ("" for assign) of a request that is for here."""
        if method == "POST":
            if not raw_path.endswith(b"/assignments"):
                return None
        elif method != "PUT" or not raw_path.endswith(b"/reward"):
            return None
        parts = raw_path.split(b"/")
        try:
            if len(parts) == 4 and parts[1] == b"experiments" and parts[2] and method == "POST":
                return ASSIGN, _text(parts[2]), ""
            if len(parts) == 6 and parts[1] == b"experiments" and parts[3] == b"assignments" and method == "PUT":
                return (REWARD, _text(parts[2]), _text(parts[4])) if parts[2] and parts[4] else None
        except UnicodeDecodeError:
            return None
        return None

    def begin(self, found: tuple[str, str, str], exchange: Exchange) -> Awaitable[Assignment | ToldReward] | None:
        """Return the answer to wait for; None if the request is for the other routes after all."""
        core, (route, name, unit) = self._core, found
        key, body = exchange.key, exchange.body
        if len(body) > _MOST_BYTES:
            return None
        if key is None or key.role not in (ASSIGNER, ADMIN) or (key.experiment or name) != name:
            return None
        experiment = core.experiment_now(name, key)
        if experiment is None:
            return None
        request: Request
        try:
            if route == ASSIGN:
                asked = _ask_body.decode(body)
                # With fewer quotes there is one name and one text.
                if body.count(b'"') > 4 and (may_be_deep(body) or repeated_name(body)):
                    return None
                request = Ask(asked.unit, asked.attributes, who=key.name)
            else:
                request = Tell(unit, _reward_body.decode(body).reward, who=key.name)
                if body.count(b'"') > 2:
                    return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return core.lanes.carry_out(experiment, [request])


def encoded_assignment(found: Assignment) -> tuple[int, bytes]:
    """Return status and body for an assignment."""
    unit, arm, number, probability, forced, at, new = found
    return 201 if new else 200, _encode(AssignmentAnswer(unit, arm, number, probability, forced, _instant(at), new))


def encoded_reward(found: ToldReward) -> tuple[int, bytes]:
    """Return status and body for a reward."""
    return 200, _encode(RewardAnswer(*found))


@lru_cache(256)
def _instant(at: datetime) -> str:
    """Return an instant as text; those of one transaction are the same."""
    return at.isoformat()


def _text(segment: bytes) -> str:
    return (unquote_to_bytes(segment) if b"%" in segment else segment).decode()
