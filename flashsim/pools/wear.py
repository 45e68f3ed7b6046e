"""What a pool's SSD wears by: bytes written and programmed, blocks erased, and the years that it lasts so."""

from collections.abc import Mapping

from flashsim.core.model import CompiledModel
from flashsim.execution.compiled_loop import Striped
from flashsim.pools.devices import statistics

#: What flash drives count, of all drives of a device together: bytes that the host wrote, bytes of flash pages programmed, those of them
#: that garbage collection moved, and blocks erased.
WORN = ("flash_written", "flash_programmed", "flash_moved", "flash_erases")
_YEAR = 365.25 * 24 * 3600


def worn(device: CompiledModel | Striped, page_size: int) -> list[int]:
    """What the flash drives of a device, with flash pages of so many bytes, counted so far, by `WORN`."""
    each = statistics(device)
    written, programs, moved, erases = (
        sum(drive[name] for drive in each) for name in ("host_write_bytes", "flash_programs", "programs_gc", "flash_erases")
    )
    return [written, programs * page_size, moved * page_size, erases]


def wear(sums: Mapping[str, float], seconds: float, lifetime_erases: int) -> dict[str, float | None]:
    """Bytes programmed a transaction, write amplification, erases a second, and years until the drive's blocks have had all their erases.

    Parameters
    ----------
    sums
        Of `WORN` and ``transactions``, in so much virtual time.
    seconds
        Of that time.
    lifetime_erases
        Erases that the blocks of the whole drive last together; 0 where it is not known.

    Examples
    --------
    >>> sums = {"flash_written": 8e9, "flash_programmed": 16e9, "flash_erases": 62500, "transactions": 1e6}
    >>> told = wear(sums, 1000, 7680 * 96 * 100_000)
    >>> told["ssd_programmed_per_transaction"], told["ssd_write_amplification"], round(told["ssd_years"], 2)
    (16000.0, 2.0, 37.38)
    """
    erases = sums["flash_erases"] / seconds
    return {
        "ssd_programmed_per_transaction": sums["flash_programmed"] / max(1, sums["transactions"]),
        "ssd_write_amplification": sums["flash_programmed"] / sums["flash_written"] if sums["flash_written"] else None,
        "ssd_erases_s": erases,
        "ssd_years": lifetime_erases / erases / _YEAR if lifetime_erases and erases else None,
    }
