"""Power cuts of small databases on drives: what survives is what the drives' own models hold, not what the database was told.

At a power cut each drive is made anew, gets the same requests at the same times, and loses power; what its sectors hold then
(`flashsim.device.survival`, the law that the tests of drives know as well) makes the pages, entries and records that recovery finds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from flashsim.core.host_queue import one_command_each
from flashsim.core.model import PowerCut
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import COMPLETION, SECTOR, WRITE, Completions, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.device import engines
from flashsim.device.presets import Preset
from flashsim.device.survival import durable_writes, vanished_writes, written_sectors
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.system import DISK, LOG, PURPOSES, SSD
from flashsim.experiments.crashing.histories import CrashHistory
from flashsim.experiments.crashing.injection import MEMORY, CrashReport, Violation, problems
from flashsim.experiments.crashing.single import events_of
from flashsim.storage.log import durable as survives
from flashsim.storage.log.durable import Durable, DurableWrite
from flashsim.storage.log.records import Version
from flashsim.storage.log.recovery import Recovery, RedoFailureError

#: Bytes of a page, and how many times longer a history's pauses are than on its stations.
PAGE, SLOWER = 8192, 10_000
#: Power cuts of a history.
CUTS = 16


class DrivenSpecification(LoggedSpecification):
    """A system with a log that keeps which write each request is."""

    def __init__(self, *parts: Any) -> None:
        self.sent: dict[int, DurableWrite] = {}
        super().__init__(*parts)

    def _send(self, write: DurableWrite, *rest: Any) -> None:
        self.sent[len(self.devices.requests)] = write
        super()._send(write, *rest)


class LostPower(NamedTuple):
    """A drive after a power cut: its requests, by their places among those of all drives, and what it says of them."""

    model: Any
    flash_page: int
    requests: Requests
    places: list[int]
    cut: PowerCut
    acknowledged: Completions

    @property
    def sectors(self) -> dict[int, int]:
        """The request that each sector holds."""
        held = written_sectors(self.model, self.requests, self.cut, self.flash_page)
        return {sector: self.places[request] for sector, request in held.items()}

    @property
    def broken_writes(self) -> set[int]:
        """Writes that no power cut may take, and that are gone: none, by the law."""
        gone = vanished_writes(self.model, self.requests, self.cut, self.acknowledged, self.flash_page)
        return gone & durable_writes(self.requests, self.acknowledged, writes_through=False)


@dataclass(frozen=True)
class DrivePowerCuts:
    """Cuts the power of a history's drives after some drawn events, recovers, and holds the database against what its clients know."""

    #: A preset for each of disk, SSD and log; a history's stations are not used.
    drives: Mapping[int, Preset]
    #: ``"engine"`` or ``"specification"``.
    model: str = "engine"

    def __call__(self, history: CrashHistory, report: CrashReport) -> Violation | None:
        """Count the power cuts, and return the first violation."""
        draw, events = generator(history.seed, "power cuts"), events_of(self.build(history))
        stops = np.unique(draw.integers(1, events + 1, CUTS)).tolist()
        system, event = self.build(history), 0
        for stop in stops:
            while event < stop:
                system.env.step()
                event += 1
            report.points += 1
            survived, wrong = self._recover(system, history, report)
            if wrong:
                outstanding = tuple(map(str, system.writes.outstanding.values()))
                log = tuple(f"{lsn}: {record}" for lsn, record in sorted(survived.log.items()))
                return Violation(history, event, outstanding, tuple(wrong), log)
        return None

    def _recover(self, system: DrivenSpecification, history: CrashHistory, report: CrashReport) -> tuple[Durable, list[str]]:
        """Cut the power now; what survives, and what is wrong after recovery from it."""
        lost = self.lose_power(system)
        survived = survivors(system, lost)
        wrong = [
            f"{PURPOSES[purpose]}: writes {sorted(each.broken_writes)} are gone" for purpose, each in lost.items() if each.broken_writes
        ]
        wrong += disagreements(system, survived) if system.logging.has("force-unit-access") else []
        image = PAGE if system.logging.images else 0
        recovery = Recovery(survived.copy(), system.logging.restart, history.frames, MEMORY, history.without, image)
        try:
            for _ in recovery.writes():
                pass
        except RedoFailureError as problem:
            return survived, [*wrong, str(problem)]
        report.kept += len(recovery.entries)
        return survived, wrong + problems(recovery, system.history, history.pages)

    def drive(self, purpose: int) -> Any:
        preset = self.drives[purpose]
        engines.finish(preset, self.model)
        return engines.classes_of(preset, self.model)[0](preset.parameters)

    def build(self, history: CrashHistory) -> DrivenSpecification:
        system, logging = history.parts()
        tears = self.drives[DISK].flash is not None
        logging = replace(logging, indirect=logging.indirect * SLOWER, pause=logging.pause * SLOWER, tears=tears)
        between = system.checkpoint * SLOWER * (8 if history.is_lopsided else 1)  # no drive here is as fast as its stations
        system = replace(system, page_size=PAGE, think=system.think * SLOWER, checkpoint=between)
        devices = {purpose: ([self.drive(purpose)], each.capacity) for purpose, each in self.drives.items()}
        return DrivenSpecification(system, devices, history.stream(), logging)

    def lose_power(self, system: DrivenSpecification) -> dict[int, LostPower]:
        """Each drive after a power cut at the system's time, by purpose."""
        return {purpose: self._lose_power(system, purpose, number) for number, purpose in enumerate(sorted(self.drives))}

    def _lose_power(self, system: DrivenSpecification, purpose: int, number: int) -> LostPower:
        sent = system.devices.sent_requests
        places = [place for place, each in enumerate(sent) if each[1] == number]
        columns = np.array([sent[place] for place in places], np.int64).reshape(-1, 5)
        requests = make_requests(columns[:, 2], columns[:, 3], columns[:, 4])
        requests["flags"] = np.where(columns[:, 2] == WRITE, system.devices.write_flags[number], 0)
        model, flash = self.drive(purpose), self.drives[purpose].flash
        parts, now = [np.zeros(0, COMPLETION)], int(system.env.now)
        for time in np.unique(columns[:, 0]).tolist():  # as they were told: a drive knows nothing of what is to come
            parts.append(model.advance(time, every=True))
            arriving = requests[columns[:, 0] == time]
            model.submit(arriving, one_command_each(arriving), time)
        parts.append(model.advance(now, every=True))
        cut = model.power_cut(now)
        return LostPower(model, flash.unit_size if flash else 0, requests, places, cut, np.concatenate(parts))


def survivors(system: DrivenSpecification, drives: Mapping[int, LostPower]) -> Durable:
    """State that recovery finds on the drives, from the writes that their sectors hold."""
    sectors, size = {purpose: each.sectors for purpose, each in drives.items()}, system.system.page_size
    durable = Durable(system.system.clients, first=system.durable.first)
    # The writes of each target, by the places of their requests, in order.
    writes: dict[int, dict[int, DurableWrite]] = {target: {} for target in range(len(survives.TARGETS))}
    for place, write in sorted(system.sent.items()):
        writes[write.target][place] = write
    _find_pages(durable.disk, writes[survives.PAGES], sectors[DISK], FIRST_PAGE, size // SECTOR, durable.rows)
    _find_pages(durable.ssd, writes[survives.FRAMES], sectors[SSD], 0, size // SECTOR, durable.rows)
    begin, in_a_sector = system.system.ssd * size // SECTOR, system.logging.restart.in_a_sector
    for place, write in writes[survives.TABLE].items():  # a write of sectors leaves entries that it does not name as they were
        for frame, entry in write.items:
            if place <= sectors[SSD].get(begin + frame // in_a_sector, -1):
                durable.table[frame] = entry
    for place, write in writes[survives.LOG].items():  # records whose sectors are all there
        _, _, _, offset, length = system.devices.requests[place]
        if all(sectors[LOG].get(sector) == place for sector in range(offset // SECTOR, (offset + length) // SECTOR)):
            durable.log.update((lsn, record) for lsn, record in write.items if lsn >= durable.first)
    if 0 in sectors[LOG]:
        durable.boot = writes[survives.BOOT][sectors[LOG][0]].items[0][1]
    return durable


def _find_pages(
    there: dict[int, Version], writes: Mapping[int, DurableWrite], sectors: Mapping[int, int], first: int, each: int, rows: int
) -> None:
    """Copies of pages, of so many sectors each: torn where their sectors are not of one write."""
    for key in {key for write in writes.values() for key, _ in write.items}:
        begin = (key - first) * each
        places = [sectors.get(sector, -1) for sector in range(begin, begin + each)]
        if max(places) >= 0:  # the first sector has the header
            version: Version = dict(writes[places[0]].items)[key] if places[0] >= 0 else Version(key, 0, (0,) * rows)
            there[key] = version._replace(is_torn=len(set(places)) > 1)


def disagreements(system: DrivenSpecification, survived: Durable) -> list[str]:
    """Places where drives hold something else than the database takes for durable, but for writes that were outstanding."""
    allowed: dict[tuple[int, int], list[Any]] = {}
    for write in system.writes.outstanding.values():
        for key, value in write.items:
            allowed.setdefault((write.target, key), []).append(value)
    wrong = []
    for target, name in ((survives.PAGES, "disk"), (survives.FRAMES, "ssd"), (survives.TABLE, "table"), (survives.LOG, "log")):
        for key, value in getattr(system.durable, name).items():
            there = getattr(survived, name).get(key)
            is_torn = isinstance(there, Version) and there.is_torn and (target, key) in allowed
            if there != value and there not in allowed.get((target, key), []) and not is_torn:
                wrong.append(f"{name} {key}: {there}, not {value}")
    if survived.boot != system.durable.boot and survived.boot not in allowed.get((survives.BOOT, 0), []):
        wrong.append(f"boot page: {survived.boot}, not {system.durable.boot}")
    return wrong
