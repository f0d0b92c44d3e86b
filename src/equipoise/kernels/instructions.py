"""Operations that are one instruction of the processor and that numba lacks, with the same values in Python."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

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
