"""A system of pools compiled: what `flashsim.execution.pooled.specification` tells as processes, as a host side of the compiled loop.

Who goes on without delay stands in a ring, first come, first served; completions are dealt with as they are told, before anybody in it.
"""

from flashsim.core.host import heap_pop
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import Integers
from flashsim.core.state_table import State
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import ACT, pause
from flashsim.execution.pooled import columns as at
from flashsim.execution.pooled.background import checkpoint, clean, logged
from flashsim.execution.pooled.clients import go_on
from flashsim.execution.pooled.pages import end_write, written
from flashsim.execution.pooled.requests import get_ready, note_interval
from flashsim.execution.pooled.tables import tables_of
from flashsim.storage.extension import state as ssd


@lean_kernel
def complete(state: State, outbox: Integers, now: int, device: int, slot: int) -> None:
    sys = tables_of(state)[0]
    numbers = sys.numbers
    who, page, count, held = sys.slots[slot, at.WHO], sys.slots[slot, at.PAGE], sys.slots[slot, at.COUNT], sys.slots[slot, at.HELD]
    sys.slots[slot, at.WHO] = numbers[at.FREE_SLOT]
    numbers[at.FREE_SLOT] = slot
    numbers[at.CAUSE] = number = sys.slots[slot, at.NUMBER]
    if device != numbers[at.CPU_NUMBER] and number - numbers[at.ASKED_FIRST] < sys.asked.shape[0]:
        sys.asked[number - numbers[at.ASKED_FIRST], at.COMPLETED] = now
    if device == numbers[at.SSD_NUMBER]:
        numbers[at.SSD_PENDING] -= 1
    if held == at.DISK_PAGES:
        end_write(state, outbox, now, page, count)
    clients = numbers[at.CLIENTS]
    if who == at.THE_LOG:
        logged(state, outbox, now)
    elif who < 0:
        written(state, page, count, held)
        if who == at.FLUSHED:
            numbers[at.CHECKPOINT_PENDING] -= 1
            if numbers[at.CHECKPOINT_PENDING] == 0:
                get_ready(sys, clients + numbers[at.CLEANERS])
    elif who < clients:
        if sys.clients[who, at.STATE] != at.SCANNED:
            go_on(state, outbox, now, who)
            return
        sys.clients[who, at.PENDING] -= 1
        if sys.clients[who, at.PENDING] == 0:
            get_ready(sys, who)
    else:
        mine = sys.cleaners[who - clients]
        mine[at.RUN_PENDING] -= 1
        if mine[at.RUN_PENDING] == 0:
            get_ready(sys, who)


@kernel_of(ACT)
def act(state: State, outbox: Integers, now: int, device: int, tag: int) -> int:
    """A request completed; or somebody goes on who need not wait any longer."""
    sys = tables_of(state)[0]
    numbers = sys.numbers
    note_interval(sys, now)
    if device >= 0:
        complete(state, outbox, now, device, tag)
    elif numbers[at.READY_FIRST] < numbers[at.READY_LAST]:
        who = sys.ready[numbers[at.READY_FIRST] % sys.ready.shape[0]]
        numbers[at.READY_FIRST] += 1
        numbers[at.CAUSE] = sys.causes[who]
        if who < numbers[at.CLIENTS]:
            go_on(state, outbox, now, who)
        elif who < numbers[at.CLIENTS] + numbers[at.CLEANERS]:
            clean(state, outbox, now, who - numbers[at.CLIENTS])
        else:
            checkpoint(state, outbox, now)
    elif numbers[at.THINKING] > 0 and sys.thinkers[0, 0] <= now:
        client = sys.thinkers[0, 1]
        numbers[at.THINKING] = heap_pop(sys.thinkers, numbers[at.THINKING])
        numbers[at.CAUSE] = sys.causes[client]
        go_on(state, outbox, now, client)
    elif numbers[at.CHECKPOINTS_AT] <= now:
        numbers[at.CHECKPOINTS_AT] = NEVER
        numbers[at.CAUSE] = sys.causes[numbers[at.CLIENTS] + numbers[at.CLEANERS]]
        numbers[at.CHECKPOINT_ROW] = FIRST_PAGE
        sys.ext.numbers[ssd.CHECKPOINT] = numbers[at.SHARP]
        checkpoint(state, outbox, now)
    is_low = numbers[at.TRANSACTIONS_HELD] - numbers[at.TRANSACTION] < numbers[at.LOW] and not numbers[at.ENDED]
    if numbers[at.BROKEN] or is_low or numbers[at.ASKED] >= numbers[at.HAND_OUT_AT]:
        pause(outbox)
    if numbers[at.READY_FIRST] < numbers[at.READY_LAST]:
        return now
    following = min(numbers[at.CHECKPOINTS_AT], sys.thinkers[0, 0]) if numbers[at.THINKING] > 0 else numbers[at.CHECKPOINTS_AT]
    return int(following)
