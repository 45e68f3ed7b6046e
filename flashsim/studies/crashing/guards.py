"""Violations that guards of restart designs prevent, by drawn histories that are crashed or shut down without them."""

from __future__ import annotations

from typing import Any

from flashsim.storage.log.records import FREE
from flashsim.storage.log.recovery import Recovery
from flashsim.studies.crashing.histories import drawn_history
from flashsim.studies.crashing.injection import exhaustive


def search(restart: str, without: list[str], seed: int, most: int) -> dict[str, Any]:
    """Crash drawn histories without guards until one fails, and that one with them; JSON-ready."""
    for history in range(most):
        if exhaustive(restart, 1, seed + history, without, limit=0).violations:
            return {"histories": history + 1, "fails": 1, "fails_with": len(exhaustive(restart, 1, seed + history, limit=0).violations)}
    return {"histories": most, "fails": 0, "fails_with": 0}


def frames_kept(without: list[str], seed: int, histories: int) -> dict[str, Any]:
    """Frames that are warm after a shutdown with LVR and DW, whose flusher is slow, in all of some histories; JSON-ready."""
    kept = in_use = 0
    for number in range(histories):
        run = drawn_history(seed + number, "lvr", without, "dw", "fuzzy").build(pause=1 << 14, chunk=1)
        while not run.is_idle:
            run.env.step()
        run.shut_down()
        while not run.is_down:
            run.env.step()
        in_use += sum(entry.state != FREE for entry in run.table.entries.values())
        recovery = Recovery(run.durable, run.logging.restart, run.system.ssd, run.system.memory, without)
        for _ in recovery.writes():
            pass
        kept += len(recovery.entries)
    return {"kept": kept / in_use}
