"""x * y + z with a single rounding: one instruction of the processor, and the same value in plain Python."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numba
from numba.core import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

    def fused_multiply_add(x: float, y: float, z: float) -> float:
        """Return x * y + z, rounded once."""
        return float(Fraction(x) * Fraction(y) + Fraction(z))

else:

    @intrinsic
    def fused_multiply_add(typing_context: Any, x: Any, y: Any, z: Any) -> tuple[Any, Callable[..., Any]]:
        """Return x * y + z, rounded once."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fma(*arguments)

        return types.float64(types.float64, types.float64, types.float64), generate
