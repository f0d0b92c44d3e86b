"""Tell a webhook that alerts opened and closed: signed, once each, again with growing pauses while it is away."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from equipoise._version import __version__
from equipoise.errors import InvalidInput, StoreChanged, visible
from equipoise.experiment.alert_episodes import OPENED, Message, mark_sent, unsent_messages

if TYPE_CHECKING:
    from equipoise.store import Store

log = logging.getLogger("equipoise.service")

SIGNATURE = "X-Equipoise-Signature"
PATIENCE = timedelta(hours=24)
"""How long a message is tried."""
_SECONDS = 10.0
"""How long the receiver may take."""
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=10), timedelta(hours=1)
SENT, FAILED, GAVE_UP = "sent", "failed", "gave up"
"""What became of an attempt, or of a message."""

_OF_EVENT = "SELECT unit FROM events WHERE experiment = ? AND number = ?"
_STAYS_PLAIN = str.maketrans({"<": "\u2039", ">": "\u203a", "@": "@\u200b"})
"""A chat would read names with these as links or as calls to everybody."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Webhook:
    """Where alerts are sent, and how.

    Attributes
    ----------
    url : str
        The receiver.
    secret : str or None
        What messages are signed with; they are not signed without one.
    units : bool
        Whether messages name the unit that an alert is about.

    Examples
    --------
    >>> Webhook(url="https://chat.example/hooks/4711", secret="long and quite random").shown
    'https://chat.example/...'
    >>> Webhook(url="chat.example")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: webhook must be an address that begins with http:// or https://
    """

    url: str
    secret: str | None = None
    units: bool = False

    def __post_init__(self) -> None:
        # The address is a secret of its own with many receivers, so no error repeats it.
        try:
            parts = urlsplit(self.url)
            is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            is_whole = False
        if not is_whole or any(character <= " " for character in self.url):
            raise InvalidInput.of("webhook", "must be an address that begins with http:// or https://")
        if self.secret is not None and len(self.secret) < 16:
            raise InvalidInput.of("webhook_secret", f"must have at least 16 characters; got {len(self.secret)}")

    @property
    def shown(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/..."

    def __repr__(self) -> str:
        return f"Webhook({self.shown!r})"

    def signature(self, body: bytes, at: datetime) -> str | None:
        """Return the header that signs a body: HMAC-SHA256 of the time, a point and the body.

        Examples
        --------
        >>> webhook = Webhook(url="https://chat.example/", secret="long and random.")
        >>> webhook.signature(b"{}", datetime(2027, 1, 1, tzinfo=UTC))
        't=1798761600,v1=f7fa0823c78795f9ada2c3dbca9f78d42b89f606725d453adcd85f6fa770813d'
        """
        if self.secret is None:
            return None
        seconds = int(at.timestamp())
        digest = hmac.new(self.secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
        return f"t={seconds},v1={digest}"

    async def post(self, data: dict[str, Any], at: datetime) -> str | None:
        """Send a message; return why that failed, or None if the receiver accepted it."""
        body = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json", "user-agent": f"equipoise/{__version__}"}
        signature = self.signature(body, at)
        if signature is not None:
            headers[SIGNATURE] = signature
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx.AsyncClient(timeout=_SECONDS) as client,
                client.stream("POST", self.url, content=body, headers=headers) as answer,
            ):
                return None if answer.is_success else f"it answered {answer.status_code}"
        except TimeoutError:
            return f"no answer in {_SECONDS:g} seconds"
        except (httpx.HTTPError, OSError) as error:
            return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def webhook_from(url: str | None, secret: str | None, units: bool, file: Path | None) -> Webhook | None:
    """Return the webhook of options, or of a TOML file with `url`, `secret` and `units`; None if there is none."""
    if file is None:
        if url is None and secret is not None:
            raise InvalidInput.of("webhook_secret", "needs the address of the receiver", hint="give --webhook URL")
        return None if url is None else Webhook(url=url, secret=secret, units=units)
    if url is not None or secret is not None:
        raise InvalidInput.of("webhook_file", "must hold everything: give it, or --webhook and its secret")
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InvalidInput.of("webhook_file", f"cannot be read: {error.strerror or error}", file) from None
    except ValueError as error:
        raise InvalidInput.of("webhook_file", f"must be TOML; {error}") from None
    unknown = sorted(set(data) - {"url", "secret", "units"})
    types_fit = isinstance(data.get("url"), str) and isinstance(data.get("secret", ""), str)
    if unknown or not types_fit or not isinstance(data.get("units", False), bool):
        raise InvalidInput.of("webhook_file", 'must have url = "...", and may have secret = "..." and units = true')
    return Webhook(url=data["url"], secret=data.get("secret"), units=units or data.get("units", False))


def text_of(message: Message) -> str:
    """Return a message as text for a chat, in which no name is read as a link or a call."""
    alert = message.alert
    what = alert.severity.capitalize() if message.kind == OPENED else "Over"
    of_arm = "" if alert.arm is None else f", arm '{alert.arm}'"
    where = f"'{alert.experiment}', {alert.check}{of_arm}"
    said = f"{alert.sentence} {alert.advice}".strip() if message.kind == OPENED else f"It was: {alert.sentence}"
    return visible(f"{what} in {where}: {said}").translate(_STAYS_PLAIN)


def data_of(message: Message, unit: str | None = None) -> dict[str, Any]:
    """Return a message as the JSON that is sent."""
    data = {
        "text": text_of(message),
        "id": f"{message.alert.id}-{message.kind}",
        "type": f"alert.{message.kind}",
        "alert": message.alert.to_dict(),
    }
    return data if unit is None else data | {"unit": unit}


def trial_message(at: datetime) -> dict[str, Any]:
    """Return a message that tests a receiver."""
    return {
        "text": "Equipoise can reach you. Alerts of experiments will come here.",
        "id": f"{secrets.token_hex(8)}-test",
        "type": "test",
        "at": at.astimezone(UTC).isoformat(),
    }


class Outbox:
    """The messages of a store that were not sent yet.

    They are sent in order, and marked in the store once the receiver accepted them. After a failure all wait, for 10
    seconds at first, then twice as long each time, up to an hour.
    """

    def __init__(self, store: Store, webhook: Webhook, observe: Callable[[str], None] = lambda _: None) -> None:
        self._store, self._webhook, self._observe = store, webhook, observe
        self._pause = timedelta()
        self._next_at = datetime.min.replace(tzinfo=UTC)
        self._waiting: dict[str, Message] = {}
        """Messages that failed, to notice which of them are given up."""

    async def send_due(self, may_send: Callable[[], bool] = lambda: True) -> int:
        """Send what is due; return how many messages were accepted. `may_send` is asked before each."""
        n_sent = 0
        while self._store.now() >= self._next_at:
            messages = await asyncio.to_thread(self._due)
            if not messages or not await asyncio.to_thread(may_send):
                break
            if not await self._send(messages[0]):
                break
            n_sent += 1
        return n_sent

    def _due(self) -> list[Message]:
        now = self._store.now()
        messages = self._store.read(lambda transaction: unsent_messages(transaction, now, PATIENCE))
        for key, message in list(self._waiting.items()):
            if message.due_at <= now - PATIENCE:
                del self._waiting[key]
                self._observe(GAVE_UP)
                log.error("a message about an alert is given up", extra={"data": {"id": key}})
        return messages

    async def _send(self, message: Message) -> bool:
        unit = await asyncio.to_thread(self._unit_of, message) if self._webhook.units else None
        data = data_of(message, unit)
        why_not = await self._webhook.post(data, datetime.now(UTC))
        now = self._store.now()
        if why_not is None:
            self._pause = timedelta()
            self._waiting.pop(data["id"], None)
            self._observe(SENT)
            with suppress(StoreChanged):  # the experiment was deleted meanwhile
                await asyncio.to_thread(mark_sent, self._store, message, now)
            return True
        self._waiting[data["id"]] = message
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE)
        self._next_at = now + self._pause
        self._observe(FAILED)
        said = {"receiver": self._webhook.shown, "why": why_not, "seconds": self._pause.total_seconds()}
        log.warning("the webhook failed; it is tried again", extra={"data": said})
        return False

    def _unit_of(self, message: Message) -> str | None:
        event = message.alert.event
        if event is None:
            return None
        rows = self._store.read(lambda transaction: transaction.execute(_OF_EVENT, message.number, event))
        return rows[0][0] if rows else None
