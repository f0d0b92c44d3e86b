"""Commands about the health of live experiments: health, mute, unmute and webhook test."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.exit_codes import FAILURE
from equipoise.cli.options import AsJson, option
from equipoise.cli.report_commands import all_names
from equipoise.cli.stores import (
    DEFAULT_STORE,
    ExperimentName,
    Key,
    StoreUrl,
    Who,
    experiments_at,
    open_experiment,
    print_answer,
)
from equipoise.errors import EquipoiseError, InvalidInput

CheckName = Annotated[
    str, typer.Argument(metavar="CHECK", help="As health names it: missing-by-arm, enrolment.", show_default=False)
]
OfArm = Annotated[str | None, option("--arm", "Change", "ARM", "Only alerts about this arm.")]
WebhookUrl = Annotated[
    str | None,
    option("--webhook", "Alerts", "URL", "Where alerts are sent; better in EQUIPOISE_SERVE_WEBHOOK, or a file."),
]
WebhookSecret = Annotated[
    str | None,
    option(
        "--webhook-secret",
        "Alerts",
        "TEXT",
        "Signs the messages; better in EQUIPOISE_SERVE_WEBHOOK_SECRET, which no list of processes shows.",
    ),
]
WebhookFile = Annotated[
    Path | None, option("--webhook-file", "Alerts", "FILE", 'Or TOML with url = "..." and secret = "...".')
]


def health(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The experiment; else all that are not finished.", show_default=False),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Check whether experiments are well; the exit code is 1 if a problem is open, for cron."""
    from equipoise import terminal
    from equipoise.health_table import all_lines, health_lines
    from equipoise.status_table import print_lines

    experiments = experiments_at(store, key)
    if name is not None:
        found = [experiments.open(name).health()]
    else:
        listed = experiments.list()
        all_names(listed, experiments.url)
        found = [experiments.open(one.name).health() for one in listed if one.state != "finished"]
    if as_json:
        data = [one.to_dict() for one in found]
        terminal.print_json(data[0] if name is not None else {"experiments": data})
    elif name is not None:
        print_lines(health_lines(found[0]))
    else:
        print_lines(all_lines(found))
    if any(one.state == "problem" for one in found):
        raise typer.Exit(FAILURE)


def mute(
    name: ExperimentName,
    check: CheckName,
    until: Annotated[
        str, option("--until", "Change", "WHEN", "14d, 12h, or an instant as 2027-06-30T18:00+02:00; a year at most.")
    ],
    reason: Annotated[str, option("--reason", "Change", "TEXT", "Why it does not matter, for the log.")],
    arm: OfArm = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Mute the alerts of a check for a while, with the reason."""
    from equipoise.experiment.commands import checked_check

    named = checked_check(check)
    at = instant_of("until", until, datetime.now(UTC))
    open_experiment(store, name, key, who).mute(named, until=at, reason=reason, arm=arm)
    data = {"name": name, "check": named, "arm": arm, "until": at.isoformat(), "reason": reason}
    print_answer(data, f"{name}: alerts about {named!r} are muted until {at:%Y-%m-%d %H:%M} UTC", as_json)


def unmute(
    name: ExperimentName,
    check: CheckName,
    arm: OfArm = None,
    reason: Annotated[str | None, option("--reason", "Change", "TEXT", "Why, for the log.")] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Tell the alerts of a check again."""
    from equipoise.experiment.commands import checked_check

    named = checked_check(check)
    open_experiment(store, name, key, who).unmute(named, arm=arm, reason=reason)
    print_answer({"name": name, "check": named, "arm": arm}, f"{name}: alerts about {named!r} are told again", as_json)


def try_webhook(
    webhook: WebhookUrl = None,
    webhook_secret: WebhookSecret = None,
    webhook_file: WebhookFile = None,
    as_json: AsJson = False,
) -> None:
    """Send a message that tests the receiver of alerts."""
    import asyncio

    from equipoise.service.webhook import trial_message, webhook_from

    found = webhook_from(webhook, webhook_secret, units=False, file=webhook_file)
    if found is None:
        raise InvalidInput(
            "the address of the receiver is missing",
            hint="give --webhook URL, or --webhook-file FILE, or set EQUIPOISE_SERVE_WEBHOOK",
        )
    at = datetime.now(UTC)
    message = trial_message(at)
    why_not = asyncio.run(found.post(message, at))
    if why_not is not None:
        raise EquipoiseError(f"{found.shown} did not accept the message: {why_not}")
    signed = "signed" if found.secret is not None else "not signed, as there is no secret"
    print_answer(
        {"receiver": found.shown, "id": message["id"], "signed": found.secret is not None},
        f"{found.shown} accepted the message ({signed})",
        as_json,
    )


def instant_of(name: str, text: str, now: datetime) -> datetime:
    """Return an instant that is given as such, or as a duration from now."""
    from equipoise.quantities import duration_seconds

    if text.strip().isdecimal():  # seconds elsewhere, but hardly meant here
        raise InvalidInput.of(name, f"needs a unit, such as {text.strip()}d for days", text)
    try:
        return now + timedelta(seconds=duration_seconds(text))
    except (InvalidInput, OverflowError):
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        expected = "must be a duration such as 90d or an instant such as 2027-06-30T18:00+02:00"
        raise InvalidInput.of(name, expected, text) from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
