"""What a read of a drive returns, and for whom it waits, wherever the page is moved meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.rng import generator
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.specification.parts import Command, Operation
from flashsim.ssd.state.flash import PlannedOperation
from flashsim.ssd.state.flash_array import PROGRAM_PAGE, READ_PAGE, STORE_PAGE
from flashsim.testing.flash_drives import random_drive, random_workload, serve_all
from tests.flashsim.ssd.drive_kinds import KINDS, drive_for
from tests.tiers import seeds


class WatchedReads(SsdSpecification):
    """A specification that looks at what each read finds on the flash."""

    def __init__(self, parameters: SsdParameters) -> None:
        super().__init__(parameters)
        self.newest: dict[int, int] = {}
        self.due: dict[Operation, tuple[int, int]] = {}
        self.from_old_places = 0

    def add(self, command: Command, plan: list[PlannedOperation], sectors: int) -> list[Operation]:
        """Note the write id that a read is to find: that of what was admitted last."""
        operations = super().add(command, plan, sectors)
        for operation in operations:
            if operation.kind in (PROGRAM_PAGE, STORE_PAGE) and operation.source < 0:
                self.newest[operation.logical] = operation.write_id
            elif operation.kind == READ_PAGE:
                self.due[operation] = operation.place, self.newest[operation.logical]
        return operations

    def read_out(self, operation: Operation) -> None:
        """A page has left its die."""
        if operation.kind == READ_PAGE:
            place, write_id = self.due.pop(operation)
            assert self.state.pages[operation.place].spare_owner == operation.logical + 1
            assert self.state.spare[operation.place] == write_id
            self.from_old_places += operation.place != place
        super().read_out(operation)

    def finish_changes(self, group: list[Operation], leave: Callable[[], None]) -> None:
        """Pages are programmed, or blocks erased: no read has waited for a move."""
        for operation in group:
            assert operation.source < 0 or READ_PAGE not in [follower.kind for follower in operation.followers]
        super().finish_changes(group, leave)

    def note_all(self) -> None:
        """What pages hold on an idle drive is what reads are to find."""
        self.newest = {page: self.version(page) for page in range(self.parameters.logical_pages)}
        self.due.clear()


@pytest.mark.parametrize("ftl", KINDS)
@pytest.mark.parametrize("seed", seeds(0, 1, deep=29))
def test_a_read_returns_what_was_admitted_last_and_waits_for_no_move(seed: int, ftl: str) -> None:
    """Before and after cuts; reads of pages that collection moves find them where they were."""
    parameters = drive_for(ftl, replace(random_drive(seed), endurance=0, read_priority=True))
    drive = WatchedReads(parameters)
    drive.load(0, parameters.capacity)
    for batch in range(3):
        drive.note_all()
        requests, at = random_workload(100 * seed + batch, parameters, 60)
        drive.submit(requests, one_command_each(requests), at + drive.now)
        drive.power_cut(drive.now + int(generator(seed, "cut", batch).integers(0, 3000)))
    drive.note_all()
    serve_all(drive, requests, at + drive.now)
    assert not drive.due


@pytest.mark.parametrize("ftl", ["page", "block", "fast", "dftl", "units", "levels and slc"])
def test_reads_go_to_old_places(ftl: str) -> None:
    """On every kind of drive where reads meet moves."""
    for seed in range(40):
        parameters = drive_for(ftl, replace(random_drive(seed), endurance=0, read_priority=True, queue_depth=32))
        drive = WatchedReads(parameters)
        drive.load(0, parameters.capacity)
        drive.note_all()
        serve_all(drive, *random_workload(seed, parameters, 60))
        if drive.from_old_places:
            return
    pytest.fail("no read was served from an old place")
