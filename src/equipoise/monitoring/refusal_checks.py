"""Check whether the service refuses calls of clients, by the class of the error."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.monitoring.check_names import REFUSED
from equipoise.monitoring.health_records import OK, PROBLEM, Check, RefusedCalls

LEAST_SHARE, LEAST_CALLS = 0.05, 20
"""More than this share of the calls and more than so many of them are a problem."""

EXPECTED = frozenset(("EnrolmentClosed", "ExperimentFinished"))
"""Errors that follow from a decision: clients go on asking when an experiment is paused or stopped."""
_MEANINGS = {
    "UnknownUnit": "clients report rewards of units that were never assigned",
    "RewardConflict": "clients report another reward for a unit that has one",
    "InvalidInput": "clients send what the API does not allow, such as rewards outside the range",
    "UnitWithdrawn": "clients report rewards of units that were withdrawn",
    "NotRewarded": "clients correct rewards that were never reported",
}
_ADVICE = "Look at what the client sends, and at what it logs: nothing of these calls was recorded."


def check_refused(refused: Sequence[RefusedCalls], n_calls: int) -> Check:
    """Check the calls about units in this hour and the one before.

    Parameters
    ----------
    refused : sequence of RefusedCalls
        By class of error.
    n_calls : int
        All calls in those two hours, refused or not.

    Examples
    --------
    >>> check_refused([RefusedCalls("UnknownUnit", 63, 80)], 300).sentence
    'The service refused 63 of 300 calls in the last two hours: UnknownUnit 63 times.'
    >>> check_refused([RefusedCalls("UnknownUnit", 3, 3)], 300).state
    'ok'
    """
    many = [
        one
        for one in refused
        if one.error not in EXPECTED and one.recent > LEAST_CALLS and one.recent > LEAST_SHARE * n_calls
    ]
    if not many:
        return Check(REFUSED, None, OK, "The service refuses few calls of clients, or none.", 0.0, LEAST_SHARE)
    total = sum(one.recent for one in many)
    listed = ", ".join(f"{one.error} {one.recent:,} times" for one in many)
    why = [_MEANINGS[one.error] for one in many if one.error in _MEANINGS]
    said = f"{'; '.join(why)[0].upper()}{'; '.join(why)[1:]}. " if why else ""
    return Check(
        REFUSED,
        None,
        PROBLEM,
        f"The service refused {total:,} of {n_calls:,} calls in the last two hours: {listed}.",
        total / n_calls,
        LEAST_SHARE,
        f"{said}{_ADVICE}",
    )
