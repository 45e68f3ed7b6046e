"""The engine's SLC cache while no command is in the drive: when it is folded, and the operations by which it is."""

from flashsim.core.host import Host
from flashsim.core.kernel import inlined_kernel, kernel_of
from flashsim.core.policies import Policies
from flashsim.core.units import NEVER
from flashsim.ssd.engine import dies, waiting
from flashsim.ssd.engine.admission import DONE, POLICY_FAILED, TABLE_FULL, empty_command
from flashsim.ssd.engine.tables import STEP, Flow, Timings
from flashsim.ssd.state.collection import fold_idle_of
from flashsim.ssd.state.flash import Flash


@inlined_kernel
def has_filled_blocks(flash: Flash) -> bool:
    pool = 0
    while pool < flash.control.pools and flash.pools[pool].slc_oldest < 0:
        pool += 1
    return bool(pool < flash.control.pools)


@inlined_kernel
def folds_at(flow: Flow, flash: Flash, times: Timings, now: int) -> int:
    """Time of the next fold if no command comes: `slc_idle` after the last, then one after the other; NEVER if none will be."""
    if flow.engine.live > 0 or flash.control.read_only or not has_filled_blocks(flash):
        flow.engine.idle_since = -1
        return NEVER
    if flow.engine.idle_since < 0:
        flow.engine.idle_since = now - (times.timing.slc_idle if flow.engine.folds_on else 0)
    return flow.engine.idle_since + times.timing.slc_idle


@kernel_of(STEP, on_demand=True)
def fold(host: Host, flow: Flow, flash: Flash, times: Timings, policies: Policies) -> int:
    """Let every plane fold the oldest block of its cache, as a command of its own; DONE, or why it stopped short."""
    if flow.engine.live + 1 + flash.control.pools * flash.control.plan_rows > flow.operations.shape[0]:
        return TABLE_FULL
    command = empty_command(flow)
    flow.operations[command].request = flow.operations[command].host_command = -1
    flow.engine.folds_on = 1
    for pool in range(flash.control.pools):
        rows = fold_idle_of(policies)(flash, policies, pool)
        if rows < 0 or flash.control.broken:
            return POLICY_FAILED
        if rows > 0:
            waiting.add_operations(flow, flash, times.timing, rows, command, 0)
            flow.operations[flash.plan[rows - 1].needs].is_part = 1
            flow.operations[command].pending += 1
    part = flow.operations[command].first_part
    while part >= 0:
        waiting.satisfy(flow, flash, times.timing, part)
        part = flow.operations[part].next_part
    dies.let_dies_work(flow, flash, times, host.scalars.now)
    return DONE
