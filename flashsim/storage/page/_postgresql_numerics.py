"""Numerics as PostgreSQL stores them, read as Arrow's decimals.

    short   1 0 sign (1 bit) scale (6) weight (7)          | digits to the base of 10,000, 2 bytes each
    long    0 sign (1 bit) scale (14) | weight (2 bytes)   | digits

The first digit counts 10,000 ** weight; zeros at either end are left out.
Source: src/backend/utils/adt/numeric.c of PostgreSQL 15.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.page._postgresql import NUMERIC_BASE, NUMERIC_NEGATIVE, NUMERIC_SHORT, NUMERIC_SPECIAL
from flashsim.storage.record import Bytes, byte_at

#: The most digits of a number in Arrow, by the 32-bit words that it takes.
_DIGITS = {4: 38, 8: 76}


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """The narrowest of Arrow's types for numbers of so many digits, so many of them after the point."""
    if precision > _DIGITS[8]:
        raise ValueError(f"values of {precision} digits, but only {_DIGITS[8]} are read")
    return (pa.decimal128 if precision <= _DIGITS[4] else pa.decimal256)(max(precision, 1), scale)


def decimals(data: Bytes, at: Integers, size: Integers, kind: pa.DataType | None = None) -> pa.Array:
    """Numbers that lie in some bytes.

    Parameters
    ----------
    data
        Bytes that hold them.
    at, size
        Where each begins, without what tells its length, or a negative number for NULL, and its bytes; shape (n,).
    kind
        Their type; without it, of as many digits as some need before and after the point.
    """
    extent = np.zeros(2, np.int64)
    problem = _extent(data, at, size, extent)
    if problem:
        raise ValueError("a value is NaN or infinity, but only numbers are read" if problem == _NOT_FINITE else "a value is no numeric")
    whole, scale = extent.tolist()
    kind = kind or decimal_type(whole + scale, scale)
    if scale > max(kind.scale, 0) or whole > kind.precision - kind.scale:
        raise ValueError(f"a value has {whole} digits before and {scale} after the point, which {kind} does not hold")
    words = np.zeros((len(at), kind.bit_width // 32), np.uint32)
    if _numbers(data, at, size, kind.scale, words):
        raise ValueError("a value has more digits than its scale")
    validity = pa.py_buffer(np.packbits(at >= 0, bitorder="little"))
    return pa.Array.from_buffers(kind, len(at), [validity, pa.py_buffer(words)])


_NO_NUMERIC, _NOT_FINITE = 1, 2


@kernel
def _pair(data: Bytes, at: int) -> int:
    return byte_at(data, at) | (byte_at(data, at + 1) << 8)


@kernel
def _head(data: Bytes, at: int) -> tuple[int, int, int]:
    """Weight and scale of a number, and bytes before its digits."""
    head = _pair(data, at)
    if head & NUMERIC_SHORT:
        weight = head & 0x3F
        return (weight - 0x40 if head & 0x40 else weight), (head >> 7) & 0x3F, 2
    weight = _pair(data, at + 2)
    return (weight - 0x10000 if weight & 0x8000 else weight), head & 0x3FFF, 4


@kernel
def _extent(data: Bytes, at: Integers, size: Integers, extent: Integers) -> int:
    """The most digits before and after the point; returns what is wrong with some value, or 0."""
    for row in range(at.shape[0]):
        if at[row] < 0:
            continue
        if size[row] < 2 or size[row] & 1:
            return _NO_NUMERIC
        head = _pair(data, at[row])
        if head & NUMERIC_SPECIAL == NUMERIC_SPECIAL:
            return _NOT_FINITE
        if not head & NUMERIC_SHORT and size[row] < 4:
            return _NO_NUMERIC
        weight, scale, skipped = _head(data, at[row])
        for place in range(at[row] + skipped, at[row] + size[row], 2):
            if _pair(data, place) >= NUMERIC_BASE:
                return _NO_NUMERIC
        if size[row] > skipped:
            first, digits = _pair(data, at[row] + skipped), 0
            while first:
                first //= 10
                digits += 1
            extent[0] = max(extent[0], digits + 4 * weight)
        extent[1] = max(extent[1], scale)
    return 0


@kernel
def _times(limbs: Integers, used: int, factor: int, addend: int) -> int:
    """Multiply a number of 32-bit words and add to it; returns how many words it has."""
    carry = addend
    for index in range(used):
        carry += limbs[index] * factor
        limbs[index] = carry & 0xFFFFFFFF
        carry >>= 32
    if carry:
        limbs[used] = carry
        return used + 1
    return used


@kernel
def _numbers(data: Bytes, at: Integers, size: Integers, scale: int, out: npt.NDArray[np.uint32]) -> bool:
    """Fill in numbers times 10 ** scale, in words of 32 bits; returns whether one has digits beyond."""
    limbs = np.zeros(out.shape[1] + 1, np.int64)
    for row in range(at.shape[0]):
        if at[row] < 0:
            continue
        weight, _, skipped = _head(data, at[row])
        limbs[:] = 0
        used, power = 0, scale + 4 * weight
        for place in range(at[row] + skipped, at[row] + size[row], 2):
            digit, divisor = _pair(data, place), 1
            for _ in range(min(max(-power, 0), 4)):
                divisor *= 10
            if digit % divisor:
                return True
            used = _times(limbs, used, NUMERIC_BASE // divisor, digit // divisor)
            power -= 4
        if size[row] > skipped:
            for _ in range(power + 4):
                used = _times(limbs, used, 10, 0)
        head = _pair(data, at[row])
        negative = head & 0x2000 if head & NUMERIC_SHORT else head & NUMERIC_NEGATIVE
        carry = 1
        for index in range(out.shape[1]):
            if negative:
                carry += limbs[index] ^ 0xFFFFFFFF
                out[row, index] = carry & 0xFFFFFFFF
                carry >>= 32
            else:
                out[row, index] = limbs[index]
    return False
