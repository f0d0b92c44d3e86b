"""Numba-compiled loops: plain functions on arrays that validate nothing and raise nothing.

Wrappers elsewhere check the input and allocate; a kernel writes into the arrays it receives. Functions marked
`compiled` use IEEE double precision without fast-math, so that a decision is the same on every machine and on every
path. Functions marked `approximate` may differ between machines by rounding errors; no decision may depend on those.

The kernels that decide are a wire format. `verify` recomputes every decision in a log and compares it bit for bit, so
a sum in another order, a fused operation or a changed constant breaks the logs of running experiments. That holds for
`assignment`, `decision`, `exact_sums`, `moments`, `pooling`, `posterior`, `random` and `solver`. If you change a result
there, even by one rounding, raise `VERSION`, and keep what the versions before need as long as you can: their logs
replay by it.
"""

VERSION = 4
"""Version of the rules and arithmetic behind decisions; every log records the version its experiment started with.

1. Removed rewards are subtracted from sums of twice a double's precision. The first logs record no version.
2. Sums are rounded again from exact ones when a reward is removed.
3. Posterior sampling has proper priors: an arm whose first rewards are all the same is not known without noise.
4. The window of windowed tracking grows, and `PooledBalance` weighs all pulls of one that does as at its last step.
"""

OLDEST_VERSION = 1
"""The oldest version that this code can replay."""


def removes_exactly(version: int) -> bool:
    """Return whether experiments of a version round their sums from exact ones when a reward is removed."""
    return version >= 2
