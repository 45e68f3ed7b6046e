"""Recovery in virtual time: its reads and writes on the devices of a system of pools, phase by phase."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from flashsim.core.model import DeviceModel
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.execution.pooled.specification import Process
from flashsim.execution.pooled.system import DISK, LOG, SSD, PoolSystem
from flashsim.execution.specified_devices import CausalEnvironment, SpecifiedDevices
from flashsim.storage.log.durable import BOOT, FRAMES, PAGES, TABLE, DurableRead, DurableWrite
from flashsim.storage.log.recovery import Recovery

#: Bytes of a request that reads the log, the frame table or pages in a row, and how many such requests are outstanding at a time.
BLOCK, AT_ONCE = 1 << 16, 64
PHASES = ("load", "analysis", "redo", "undo")
#: Requests of a phase: the purpose of their device, the operation, how many are outstanding at a time, and how often.
Work = Counter[tuple[int, int, int]]


def recover(
    recovery: Recovery, system: PoolSystem, devices: Mapping[int, tuple[Sequence[DeviceModel], int]]
) -> dict[str, tuple[int, Work]]:
    """Let recovery run on idle devices; of each of `PHASES` its nanoseconds and its requests.

    A read of several pages asks for `AT_ONCE` runs of them at once, one of the log or the frame table for block after block; a write ends
    before recovery goes on.

    Raises
    ------
    RedoFailureError
        See `Recovery.run`.
    """
    env, times, works = CausalEnvironment(), dict.fromkeys(PHASES, 0), {phase: Work() for phase in PHASES}
    numbers = {purpose: number for number, purpose in enumerate(sorted(devices))}
    asked = SpecifiedDevices(env, [devices[each] for each in sorted(devices)])

    def process() -> Process:
        for step in recovery.run():
            begin, operation = int(env.now), WRITE if isinstance(step, DurableWrite) else READ
            for purpose, places in _requests(system, recovery, step):
                works[recovery.phase][purpose, operation, len(places)] += 1
                yield env.all_of([asked.ask(numbers[purpose], operation, offset, length) for offset, length in places])
            if isinstance(step, DurableWrite):
                recovery.durable.apply(step)
            times[recovery.phase] += int(env.now) - begin

    env.process(process())
    env.run()
    return {phase: (times[phase], works[phase]) for phase in PHASES}


def _runs(keys: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Keys in a row, at most so many together: the first, and how many."""
    numbers = np.asarray(keys)
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
        for begin in range(0, len(run), most):
            yield int(run[begin]), min(most, len(run) - begin)


def _requests(system: PoolSystem, recovery: Recovery, step: DurableRead | DurableWrite) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Requests of a step that are made at once, one lot after the other: the purpose of their device, offsets and lengths in bytes."""
    size, in_a_sector = system.page_size, recovery.restart.in_a_sector
    keys = step.keys if isinstance(step, DurableRead) else tuple(key for key, _ in step.items)
    if not keys:
        return
    if step.target in (PAGES, FRAMES):
        purpose, first = (DISK, FIRST_PAGE) if step.target == PAGES else (SSD, 0)
        places = [((begin - first) * size, count * size) for begin, count in _runs(keys, max(1, BLOCK // size))]
        for number in range(0, len(places), AT_ONCE):
            yield purpose, places[number : number + AT_ONCE]
        return
    if step.target == TABLE:
        purpose, begin = SSD, system.ssd * size + keys[0] // in_a_sector * SECTOR
        length = (keys[-1] // in_a_sector - keys[0] // in_a_sector + 1) * SECTOR
    elif step.target == BOOT:
        purpose, begin, length = LOG, 0, SECTOR
    else:
        if isinstance(step, DurableRead):
            logged = recovery.durable.bytes_from(keys[0], keys[-1] + 1)
        else:
            logged = sum(one.length for _, one in step.items)
        purpose, begin, length = LOG, SECTOR, -(-logged // SECTOR) * SECTOR
    for offset in range(begin, begin + length, BLOCK):
        yield purpose, [(offset, min(BLOCK, begin + length - offset))]
