"""Numba-compiled loops: plain functions on arrays that validate nothing and raise nothing.

Wrappers elsewhere check the input and allocate; a kernel writes into the arrays it receives. Functions marked
`compiled` use IEEE double precision without fast-math, so that a decision is the same on every machine and on every
path. Functions marked `approximate` may differ between machines by rounding errors; no decision may depend on those.

The kernels that decide are a wire format. `verify` recomputes every decision in a log and compares it bit for bit, so
a sum in another order, a fused operation or a changed constant breaks the logs of running experiments. That holds for
`assignment`, `decision`, `moments`, `pooling`, `random` and `solver`. If you change a result there, even by one
rounding, raise `VERSION`.
"""

VERSION = 1
"""Version of the rules and arithmetic behind decisions; every log records the version its experiment started with."""
