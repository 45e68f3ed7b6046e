"""Parameters of a solid state drive that have no effect without another one."""

from collections.abc import Iterator
from typing import Any


def unused_parameters(drive: Any) -> Iterator[tuple[str, str]]:
    """Each parameter of a `flashsim.ssd.parameters.SsdParameters` that differs from its default without effect, and why it has none."""
    programs, erases = (drive.suspend in (what, "both") for what in ("program", "erase"))
    for there, why, names in (
        (drive.slc_cache, "there is no slc_cache", ("slc_read", "slc_program", "slc_idle")),
        (drive.retries, "no page is read once more (read_retry)", ("read_retry_time",)),
        (drive.collection_rate, "there is no collection_rate", ("collection_debt", "collection_share", "collection_floor")),
        (drive.command_slots, "there are no command_slots", ("command_slot", "slot_order")),
        (drive.zone_size, "there are no zones (zone_size)", ("zone_open_limit", "zone_active_limit")),
        (drive.write_buffer, "there is no write_buffer to protect", ("power_protected",)),
        (programs or erases, "reads interrupt nothing (suspend)", ("suspend_overhead", "suspend_stop", "suspend_progress")),
        (programs, "reads interrupt no program (suspend)", ("program_step", "program_long_step", "program_long_share")),
        (erases, "reads interrupt no erase (suspend)", ("erase_step",)),
    ):
        for name in () if there else names:
            if getattr(drive, name) != getattr(type(drive), name):
                yield name, why
