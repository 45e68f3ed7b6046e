"""Draws that are a function of a number: engine and specification draw alike, and no generator has a state."""

from flashsim.core.kernel import lean_kernel

_LOW = 0xFFFFFFFF


@lean_kernel
def mixed(number: int) -> int:
    """32 well mixed bits of a number: the finaliser of MurmurHash3 (Appleby, public domain) over steps of the golden ratio.

    Of successive numbers alone the finaliser's draws depend on each other enough to move the write amplification of two choices by 0.4 %.
    """
    bits = (number * 0x9E3779B9) & _LOW
    bits = ((bits ^ (bits >> 16)) * 0x85EBCA6B) & _LOW
    bits = ((bits ^ (bits >> 13)) * 0xC2B2AE35) & _LOW
    return bits ^ (bits >> 16)
