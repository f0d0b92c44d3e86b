"""The commands `equipoise keys create`, `list` and `revoke`: who may use a service."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.options import AsJson, option
from equipoise.cli.stores import (
    DEFAULT_STORE,
    DatabaseUrl,
    Who,
    any_store,
    author,
    existing_store,
    note,
    print_answer,
    rehearse,
)
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.keys import Key
    from equipoise.store import Store

Role = Annotated[
    str, typer.Option("--role", metavar="reader|assigner|admin", help="See all; ask and tell only; or do everything.")
]
Name = Annotated[str | None, option("--name", "Key", "NAME", "Who the log says it was, such as 'web site'.")]
Only = Annotated[str | None, option("--experiment", "Key", "NAME", "The only experiment it is for.")]
Expires = Annotated[
    str | None, option("--expires", "Key", "WHEN", "From then on refused: 90d, 12h, or 2027-06-30T18:00+02:00.")
]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="As listed; the first part of the key will do.")]


def create(
    role: Role,
    name: Name = None,
    experiment: Only = None,
    expires: Expires = None,
    store: DatabaseUrl = DEFAULT_STORE,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once: the store keeps only its hash."""
    from equipoise.keys import create_key

    def made(opened: "Store") -> "tuple[Key, str]":
        until = None if expires is None else _instant(expires, opened.now())
        return create_key(opened, role=role, name=name, experiment=experiment, expires_at=until, who=author(who))

    rehearse(store, made)
    key, text = made(any_store(store))
    if not as_json:
        until = "" if key.expires_at is None else f", until {key.expires_at:%Y-%m-%d %H:%M} UTC"
        only = "" if key.experiment is None else f" of {key.experiment!r}"
        note(f"key {key.id} for {key.role}s{only}{until}; keep it, it cannot be shown again:")
    print_answer(key.to_dict() | {"key": text}, text, as_json)


def list_(store: DatabaseUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the keys: what they are for, who made them, when they were used last."""
    from equipoise import printing
    from equipoise.keys import list_keys

    opened = existing_store(store)
    found, now = list_keys(opened), opened.now()
    if as_json:
        printing.print_json({"keys": [key.to_dict() | {"state": key.state(now)} for key in found]})
        return
    if not found:
        note(f"{opened.url} has no keys; equipoise keys create makes one")
        return
    printing.print_table(
        [
            ("id", [key.id for key in found]),
            ("name", [_name(key) for key in found]),
            ("role", [key.role for key in found]),
            ("experiment", [key.experiment or "all" for key in found]),
            ("state", [key.state(now) for key in found]),
            ("last used", [_day(key.last_used_at, "never") for key in found]),
            ("expires", [_day(key.expires_at, "never") for key in found]),
            ("made by", [_made(key) for key in found]),
        ],
        always=7,
        words=("id", "name", "role", "experiment", "state", "last used", "expires", "made by"),
    )


def revoke(key_id: KeyId, store: DatabaseUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Refuse a key from now on; servers that run notice within two seconds."""
    from equipoise.keys import revoke_key

    opened = existing_store(store)
    # Somebody who has the whole key at hand need not cut it.
    parts = key_id.split("_")
    key = revoke_key(opened, parts[1] if parts[0] == "eq" and len(parts) > 1 else key_id)
    print_answer(key.to_dict(), f"key {key.id} ({key.name}) is revoked", as_json)


def _instant(text: str, now: datetime) -> datetime:
    from equipoise.cli.experiment_file import duration

    if text.strip().isdecimal():  # which elsewhere are seconds, and here hardly ever
        raise InvalidInput(f"--expires needs a unit, such as {text.strip()}d for days; got {text!r}")
    try:
        return now + timedelta(seconds=duration(text))
    except (InvalidInput, OverflowError):
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"--expires must be a duration such as 90d or an instant such as 2027-06-30T18:00+02:00; got {text!r}"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _day(at: datetime | None, never: str) -> str:
    return never if at is None else f"{at:%Y-%m-%d %H:%M}"


def _name(key: "Key") -> str:
    """Return a name, unless it only repeats what stands next to it."""
    return "" if key.name == f"{key.role} {key.id}" else key.name


def _made(key: "Key") -> str:
    return key.created_by or ""
