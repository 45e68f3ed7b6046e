"""Numba's types of the arrays that kernels take, for signatures that are compiled beforehand."""

from __future__ import annotations

from numba import types

VECTOR = types.Array(types.int64, 1, "C")
MATRIX = types.Array(types.int64, 2, "C")
