"""Compile kernels with numba: the decorators with their flags, and two instructions that numba lacks.

The only module that imports numba, so that `equipoise.kernels` and `equipoise.kernels.rules` are cheap to import.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import event, types
from numba.extending import intrinsic, is_jitted

Function = TypeVar("Function", bound=Callable[..., Any])

# Without `_nrt` numba counts the references to every array that a function receives, inlined or not, by atomic
# instructions: four fifths of a simulated step of `Uniform`, and half of one of `PooledBalance`. The callers of kernels
# hold the arrays meanwhile, and kernels return none. `_nrt` is not documented. If numba drops it, leave it out: results
# stay the same, and only time is lost.
_STRICT: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": False, "_nrt": False}
_RELAXED: dict[str, Any] = {**_STRICT, "fastmath": {"reassoc", "contract", "nnan", "ninf", "nsz", "arcp"}}
# Always pass all flags: otherwise numba hands the caller's flags down to the functions it calls, and caches that.


def compiled(function: Function) -> Function:
    """Compile a function with numba: cached on disk, without the GIL, with IEEE division by zero.

    Inside, prefer loops to whole-array assignments: `x[:] = y` costs half a second of compilation.
    """
    return cast("Function", numba.njit(**_STRICT, forceinline=False)(function))


def allocating(function: Function) -> Function:
    """Compile like `compiled`, for a function that creates arrays."""
    return cast("Function", numba.njit(**_STRICT | {"_nrt": True}, forceinline=False)(function))


def inlined(function: Function) -> Function:
    """Compile like `compiled`, and inline the code into every caller: passing an array takes seven machine words."""
    return cast("Function", numba.njit(**_STRICT, forceinline=True)(function))


def approximate(function: Function) -> Function:
    """Compile like `compiled`, but let the compiler reorder sums, fuse operations, and assume finite numbers."""
    return cast("Function", numba.njit(**_RELAXED, forceinline=False)(function))


def approximate_inlined(function: Function) -> Function:
    """Compile like `approximate`, and inline the code into every caller."""
    return cast("Function", numba.njit(**_RELAXED, forceinline=True)(function))


def compiled_for_caller(function: Function) -> Function:
    """Compile like `compiled`, but without the disk cache: for a function that calls one supplied by the user."""
    return cast("Function", numba.njit(nogil=True, error_model="numpy", fastmath=False)(function))


def is_compiled(function: Any) -> bool:
    """Return whether numba compiled a function; with the compiler switched off, accept any callable."""
    return callable(function) if numba.config.DISABLE_JIT else is_jitted(function)  # type: ignore[attr-defined]


def when_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` once, the next time numba compiles a function that is not in its cache."""

    class Once(event.Listener):
        def on_start(self, event_: Any) -> None:
            nonlocal tell
            call, tell = tell, lambda: None
            call()

        def on_end(self, event_: Any) -> None:
            pass

    event.register("numba:compile", Once())  # type: ignore[no-untyped-call]


if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

    def fused_multiply_add(x: float, y: float, z: float) -> float:
        """Return x * y + z, rounded once."""
        return float(Fraction(x) * Fraction(y) + Fraction(z))

    def high_product(x: np.uint64, y: np.uint64) -> np.uint64:
        """Return the upper 64 bits of a 64 by 64 bit product."""
        return np.uint64((int(x) * int(y)) >> 64)

else:

    @intrinsic
    def fused_multiply_add(typing_context: Any, x: Any, y: Any, z: Any) -> tuple[Any, Callable[..., Any]]:
        """Return x * y + z, rounded once."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fma(*arguments)

        return types.float64(types.float64, types.float64, types.float64), generate

    @intrinsic
    def high_product(typing_context: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
        """Return the upper 64 bits of a 64 by 64 bit product."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wide = ir.IntType(128)
            product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
            return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

        return types.uint64(types.uint64, types.uint64), generate
