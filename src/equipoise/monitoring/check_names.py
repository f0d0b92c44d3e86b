"""Name the checks of a running experiment; records, commands and pages use these names without loading NumPy."""

MISSING_BY_ARM, MISSING, DELAY_DRIFT, DELAY_BY_ARM = "missing by arm", "missing overall", "delay drift", "delay by arm"
REWARD_JUMP, UNUSUAL_REWARD = "changed rewards", "unusual reward"
ENROLMENT, REWARDS = "enrolment", "rewards coming"
DRAWS, TRACKING = "shares as logged", "shares as wanted"
REFUSED = "refused calls"
RULE_MET, DEADLINE_PASSED, WINDOWS_OVER, KEY_EXPIRES = "rule met", "deadline passed", "windows over", "key expires"
OFF_PLAN, SUMS_BY_HOUR, VERIFICATION = "off plan", "sums by hour", "verification"

FROM_SUMS = (
    *(MISSING_BY_ARM, MISSING, DELAY_DRIFT, DELAY_BY_ARM),
    *(REWARD_JUMP, UNUSUAL_REWARD, ENROLMENT, REWARDS, DRAWS, TRACKING),
)
"""Checks that are computed from sums by hour; they say nothing before a day is over and 100 people came."""
FACTS = (RULE_MET, DEADLINE_PASSED, WINDOWS_OVER, KEY_EXPIRES, OFF_PLAN, SUMS_BY_HOUR, VERIFICATION)
"""Checks that state a fact: chance has no part in them."""
CHECKS = (*FROM_SUMS, REFUSED, *FACTS)
"""Every check that can open an alert."""
