"""Every compiled loop and nothing else: plain functions on arrays that validate nothing and raise nothing.

Wrappers elsewhere check their input and allocate; a kernel writes into the arrays it is given. What is `compiled` is
IEEE double precision without fast-math, so that a decision is the same wherever and however it is computed. What is
`approximate` may be off by rounding errors that differ between machines; its callers must not let that decide anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Function = TypeVar("Function", bound="Callable[..., Any]")


_STRICT: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": False}
_RELAXED: dict[str, Any] = {**_STRICT, "fastmath": {"reassoc", "contract", "nnan", "ninf", "nsz", "arcp"}}
# Both flags are always said: left out, numba passes those of the caller on to what it calls, and caches that.


def compiled(function: Function) -> Function:
    """Compile a function with numba: cached on disk, without the GIL, dividing by zero as IEEE says.

    In what it compiles, loops beat whole-array assignments: `x[:] = y` costs half a second of compilation.
    """
    return cast("Function", numba.njit(**_STRICT, forceinline=False)(function))


def inlined(function: Function) -> Function:
    """Compile like `compiled`, and copy the code into every caller: handing on one array takes seven words."""
    return cast("Function", numba.njit(**_STRICT, forceinline=True)(function))


def approximate(function: Function) -> Function:
    """Compile like `compiled`, but let the compiler reorder sums, fuse operations, and assume finite numbers."""
    return cast("Function", numba.njit(**_RELAXED, forceinline=False)(function))


def approximate_inlined(function: Function) -> Function:
    """Compile like `approximate`, and copy the code into every caller."""
    return cast("Function", numba.njit(**_RELAXED, forceinline=True)(function))


def when_compiling(tell: Callable[[], None]) -> Callable[[], None]:
    """Call a function the next time that something is compiled that no cache has; what is returned calls that off."""
    from numba.core import event

    class Once(event.Listener):
        def on_start(self, event_: Any) -> None:
            nonlocal tell
            call, tell = tell, lambda: None
            call()

        def on_end(self, event_: Any) -> None:
            pass

    listener = Once()
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    return lambda: event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]
