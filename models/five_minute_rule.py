"""The five-minute rule: for how long a page that is referenced again is worth its place in a faster, dearer memory.

Sources: Gray and Graefe, "The five-minute rule ten years later", SIGMOD Record 26(4), 1997; Graefe, "The five-minute rule twenty years
later", DaMoN 2007.
"""

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MIB


def break_even(page_size: int, accesses: float, device_price: float, memory_price: float) -> float:
    """Seconds between two references at which keeping a page costs as much as fetching it each time.

    `page_size`: bytes; `accesses`: random accesses a second that a device serves; `device_price`: of one device; `memory_price`: of 2**20
    bytes of the faster memory, in the same currency. Raises InvalidParameterError: a value that is not above 0.

    The year 1997: pages of 8 KiB, disks of 64 accesses a second and 2000 dollars, memory of 15 dollars a megabyte.

    >>> round(break_even(8192, 64, 2000, 15))
    267
    """
    for name, value in {"page_size": page_size, "accesses": accesses, "device_price": device_price, "memory_price": memory_price}.items():
        if not value > 0:
            raise InvalidParameterError(name, value, "it must be above 0")
    return MIB / page_size / accesses * device_price / memory_price
