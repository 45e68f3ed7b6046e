"""Draws that are a function of a number: engine and specification draw alike, and no generator has a state."""

from typing import TYPE_CHECKING, NoReturn

from flashsim.core.errors import FlashsimError
from flashsim.core.kernel import lean_kernel

_LOW = 0xFFFFFFFF


@lean_kernel
def mix_bits(number: int) -> int:
    """32 well mixed bits of a number: the finaliser of MurmurHash3 (Appleby, public domain) over steps of the golden ratio.

    Of successive numbers alone the finaliser's draws depend on each other enough to move the write amplification of two choices by 0.4 %.
    """
    bits = (number * 0x9E3779B9) & _LOW
    bits = ((bits ^ (bits >> 16)) * 0x85EBCA6B) & _LOW
    bits = ((bits ^ (bits >> 13)) * 0xC2B2AE35) & _LOW
    return bits ^ (bits >> 16)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        """Refuse the former name of `mix_bits`, which designs import."""
        if name == "mixed":
            raise FlashsimError("flashsim.core.draws.mixed is called mix_bits now")
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
