"""The backend of a serial algorithm in virtual time: on several machines at once, since its requests do not depend on time.

I/O is synchronous and does not overlap with CPU time, as in do2009, section 4.1: a request arrives when the CPU time before it has
passed, and the CPU goes on when the last request of a batch has completed.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from flashsim.core.request import COMPLETION, READ, REQUEST, WRITE, Completions, Integers, Requests, total
from flashsim.core.units import MIB
from flashsim.execution.cpu import UserTime, kernel_times, kernel_times_at_once
from flashsim.execution.file_access import METADATA, FileAccess, Group, labels
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Blocks, Cpu, Work
from flashsim.execution.run import PhaseCost, Run
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import ranges
from flashsim.storage.volume import Extents, Volume

#: Requests, or bytes, that are gathered at most: the cost of a submission no longer shows, and the devices' tables stay small.
_GATHERED, _BYTES_GATHERED = 1024, 512 * MIB


class SimulatedBackend(FileAccess):
    """The backend: one volume and content, any number of machines, for which groups of requests are gathered.

    See `FileAccess` for the other parameters.
    """

    takes_blocks = True

    def __init__(self, volume: Volume, content: ColumnContent, machines: Sequence[Machine], *, trim: bool = False) -> None:
        super().__init__(volume, content, trim=trim)
        self.machines = machines
        self.runs = [Run(machine.name) for machine in machines]
        self._seeks = [[0, 0] for _ in machines]
        self._seeking = [[device for device in machine.devices if "seeks" in device.statistics()] for machine in machines]
        self._user = {id(machine.cpu): UserTime(machine.cpu) for machine in machines}
        self._priced = any(machine.cpu is not None for machine in machines)
        self.has_priced_pages = any(machine.cpu is not None and machine.cpu.user_time({Work.PAGE: 1}) != 0 for machine in machines)
        self._groups: list[Group] = []
        self._ended: list[tuple[int, list[PhaseCost]]] = []  # phases of gathered requests, a phase a run, and how many there were then
        self._at_once = False  # whether the groups are one set of requests that go at once
        self._requests = self._bytes = 0
        for machine in machines:
            machine.now = max(device.now for device in machine.devices)

    def cpu(self, request: Cpu) -> None:
        """Let user time pass, where any machine has prices of it."""
        if self._priced:
            for user in self._user.values():
                user.pass_by(request)

    def phase_ends(self) -> None:
        """Note whose requests were gathered; where devices count seeks, let them complete and CPU time pass, and note the seeks."""
        if self.runs[0].phases:
            self._share_counts()
        if not any(self._seeking):
            if self.runs[0].phases:
                self._ended.append((self._requests, [run.phase for run in self.runs]))
            return
        self._serve()
        for index, (machine, run) in enumerate(zip(self.machines, self.runs, strict=True)):
            machine.now += self._user[id(machine.cpu)].since
            totals = [sum(device.statistics()[name] for device in self._seeking[index]) for name in ("seeks", "seek_time")]
            if run.phases:
                run.phase.seeks += totals[0] - self._seeks[index][0]
                run.phase.seek_time += totals[1] - self._seeks[index][1]
            self._seeks[index] = totals
        for user in self._user.values():
            user.since = 0

    def _share_counts(self) -> None:
        """Hand what the first run has counted in the present phase to the others, and user time to all."""
        first, *others = (run.phase for run in self.runs)
        for phase in others:
            for name in ("reads", "writes", "pages_read", "pages_written"):
                setattr(phase, name, getattr(first, name))
            phase.work = dict(first.work)
        for machine, run in zip(self.machines, self.runs, strict=True):
            run.phase.user_time += self._user[id(machine.cpu)].spent
            run.result_rows = self.runs[0].result_rows
        for user in self._user.values():
            user.spent = 0

    def finish(self) -> None:
        """Let the last requests complete and the last CPU time pass."""
        self._serve()
        for machine in self.machines:
            machine.now += self._user[id(machine.cpu)].since

    def issue(self, groups: Sequence[Group]) -> None:
        """Take requests, which every machine serves when there is no more to gather; several groups are of different devices."""
        count = sum(len(group.extents.lengths) for group in groups)
        if not count:
            return
        at_once = groups[0].at_once and count > 1
        if self._groups and (at_once or groups[0].extents.device != self._groups[0].extents.device):
            self._serve()
        self._groups += groups
        self._at_once = at_once
        self._requests += count
        self._bytes += sum(total(group.extents.lengths) for group in groups)
        for user in self._user.values():
            user.gather()
        if at_once or self._requests >= _GATHERED or self._bytes >= _BYTES_GATHERED:
            self._serve()

    def blocks(self, blocks: Blocks) -> None:
        """Issue reads and writes as the algorithm would ask for them; pages take their time, and what blocks cost passes between them."""
        count, pages_read = len(blocks.starts), [{str(Work.PAGE): blocks.counts}]
        times = [
            (user, user.of_each(pages_read, count), user.of_each(blocks.before, count), user.of_each(blocks.after, count))
            for user in self._user.values()
        ]
        writes = self._writes(blocks)
        for block, group in enumerate(self._reads(blocks)):
            for user, paging, _, _ in times:
                user.pass_time(paging[block])
            self.issue([group])
            for user, _, before, _ in times:
                user.pass_time(before[block])
            for pages, each in writes.get(block, ()):
                if pages:
                    self.cpu(Cpu({Work.PAGE: pages}))
                self.issue([each])
            for user, _, _, after in times:
                user.pass_time(after[block])

    def _reads(self, blocks: Blocks) -> Iterator[Group]:
        file, starts, counts = blocks.file, blocks.starts, blocks.counts
        ends = np.cumsum(counts) * file.page_size
        if blocks.page_io:
            starts, counts = ranges(starts, counts), np.ones(total(counts), np.int64)
        device, offsets, lengths = self.volume.locate(file, starts, counts)
        bounds = np.searchsorted(np.cumsum(lengths), ends).tolist()
        begin = 0
        for bound in bounds:
            yield Group(READ, Extents(device, offsets[begin : bound + 1], lengths[begin : bound + 1]), file.name)
            begin = bound + 1

    def _writes(self, blocks: Blocks) -> dict[int, list[tuple[int, Group]]]:
        """Place new pages and keep what they hold; returns the pages and the requests of each write, by the block that it follows.

        Writes of the file system's own have no pages of the algorithm's.
        """
        groups: dict[int, list[tuple[int, Group]]] = {}
        pages = blocks.pages
        if pages is None:
            return groups
        of, begins, lengths = pages.extents
        bounds, firsts = np.searchsorted(of, np.arange(len(pages.pages) + 1)).tolist(), []
        for number, (file, count, block) in enumerate(zip(pages.files, pages.pages.tolist(), blocks.of.tolist(), strict=True)):
            own, first = slice(bounds[number], bounds[number + 1]), file.pages
            firsts.append(first)
            self.volume.extend(file, count)
            made = groups.setdefault(block, [])
            made.append((count, Group(WRITE, self.volume.locate(file, begins[own] + first, lengths[own]), file.name)))
            made += [(0, Group(WRITE, extents, METADATA)) for extents in self.volume.metadata_due()]
        self.content.write_each(pages.files, np.array(firsts), pages.pages, pages.counts, pages.tuples)
        return groups

    def _serve(self) -> None:
        """Have each machine serve what was gathered, as soon as its last requests have completed."""
        if not self._groups:
            return
        gathered, ends = _chain(self._groups, self._at_once)
        firsts = np.array([0, *([] if self._at_once else ends[:-1])])
        user_times = {key: user.take(firsts, len(gathered)) for key, user in self._user.items()}
        for machine, run in zip(self.machines, self.runs, strict=True):
            requests = gathered.copy() if len(self.machines) > 1 else gathered
            kernel = self._pass_cpu_time(machine, requests, user_times[id(machine.cpu)])
            completions = np.empty(len(requests), COMPLETION)
            for device, part in _parts_by_device(requests["device"]):
                completions[part] = machine.devices[device].serve(requests[part], machine.now, settle=False)
            self._account(machine, run, requests, completions, kernel, ends)
        self._groups, self._ended, self._requests, self._bytes = [], [], 0, 0

    def _pass_cpu_time(self, machine: Machine, requests: Requests, user_times: Integers) -> Integers:
        """Let the CPU time before the first requests pass, and set that before each other one; returns the kernel's part for each."""
        if self._at_once:
            kernel = kernel_times_at_once(machine.cpu, machine.devices, self._groups)
        else:
            kernel = kernel_times(machine.cpu, machine.devices[requests["device"][0]], requests["length"])
        first = requests["dependency"] < 0
        thinks = user_times + kernel
        requests["offset"] += machine.start
        requests["think"] = np.where(first, 0, thinks)
        machine.now += int(thinks[first].sum())
        return kernel

    def _account(self, machine: Machine, run: Run, requests: Requests, completions: Completions, kernel: Integers, ends: list[int]) -> None:
        """Move a machine's clock to the last completion, divide the time between phases, and record the requests."""
        begin, machine.now = machine.now, int(completions["completed"].max())
        spent = machine.now - begin - int(requests["think"].sum())
        waits: Integers = requests["think"]
        ended: Integers = completions["completed"]
        for phase, kernel_time, io_time in self._ended_phase_times(run, kernel, ended - begin - np.cumsum(waits)):
            phase.kernel_time += kernel_time
            phase.io_time += io_time
            spent -= io_time
        run.phase.kernel_time += int(kernel[self._ended[-1][0] if self._ended else 0 :].sum())
        run.phase.io_time += spent
        run.outstanding.add(completions["submitted"], completions["completed"])
        if machine.observer is not None:
            index = [each is run for each in self.runs].index(True)
            phase_ends = [*((phases[index].name, count) for count, phases in self._ended), (run.phase.name, len(requests))]
            machine.observer.observe(phase_ends, requests, completions, self._at_once)
        if machine.sink is None:
            return
        requests["think"] = np.where(requests["dependency"] < 0, 0, kernel)
        if self._at_once:
            machine.sink.record(requests, completions, labels(self._groups))
            return
        starts = [0, *ends[:-1]]
        requests["dependency"] -= np.repeat(starts, np.diff(ends, prepend=0))
        requests["think"][starts] = 0
        for start, end, group in zip(starts, ends, self._groups, strict=True):  # as the algorithm asked for them
            machine.sink.record(requests[start:end], completions[start:end], group.label)

    def _ended_phase_times(self, run: Run, kernel: Integers, spent: Integers) -> Iterator[tuple[PhaseCost, int, int]]:
        """Kernel and I/O time of each phase that has ended, ns, from the kernel time of each request and the I/O time up to its end."""
        if not self._ended:
            return
        ends, index = [0, *(end for end, _ in self._ended)], [each is run for each in self.runs].index(True)
        times = np.stack([np.concatenate([[0], np.cumsum(kernel)]), np.concatenate([[0], spent])])[:, ends]
        for (_, phases), (kernel_time, io_time) in zip(self._ended, np.diff(times).T.tolist(), strict=True):
            yield phases[index], kernel_time, io_time


def _parts_by_device(devices: Integers) -> Iterator[tuple[int, slice]]:
    """The parts of requests that go to one device each."""
    bounds = [0, *(np.flatnonzero(np.diff(devices)) + 1).tolist(), len(devices)]
    for start, end in pairwise(bounds):
        yield int(devices[start]), slice(start, end)


def _chain(groups: Sequence[Group], at_once: bool) -> tuple[Requests, list[int]]:
    """The requests of groups, each after the one before it unless they all come at once; and where each group ends."""
    counts = [len(group.extents.lengths) for group in groups]
    ends = list(accumulate(counts))
    if len(groups) == 1 or at_once:
        return np.concatenate([group.requests() for group in groups]), ends
    requests = np.zeros(ends[-1], REQUEST)
    requests["device"] = groups[0].extents.device
    requests["operation"] = np.repeat([group.operation for group in groups], counts)
    requests["offset"] = np.concatenate([group.extents.offsets for group in groups])
    requests["length"] = np.concatenate([group.extents.lengths for group in groups])
    requests["dependency"] = np.arange(-1, ends[-1] - 1)
    return requests, ends
