"""Every compiled loop and nothing else: plain functions on arrays that validate nothing and raise nothing.

Wrappers elsewhere check their input and allocate; a kernel writes into the arrays it is given. What is `compiled` is
IEEE double precision without fast-math, so that a decision is the same wherever and however it is computed. What is
`approximate` may be off by rounding errors that differ between machines; its callers must not let that decide anything.

The kernels that decide are a wire format. `verify` takes every decision in a log again and compares it bit for bit, so
a sum in another order, a fused operation or a changed constant breaks the logs of running experiments. That holds for
`assignment`, `decision`, `moments`, `pooling`, `random` and `solver`. Whoever changes a result there, by a rounding
only, raises `VERSION`.
"""

VERSION = 1
"""Version of the rules and the arithmetic that decide; every experiment's log records the one it was created with."""
