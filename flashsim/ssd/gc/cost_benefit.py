"""Cost-benefit: reclaim the block with the highest (1 - u) / 2u times age, u being the share of its pages that are valid.

Rosenblum and Ousterhout (*The Design and Implementation of a Log-Structured File System*, TOCS 10(1), 1992) weigh what cleaning gains
against reading and writing a segment.  As in Kawaguchi, Nishioka and Motoda (*A Flash-Memory Based File System*, USENIX 1995) a block's
age runs from its last invalidation, or from its closing before the first.  The unit is one page written or trimmed by the host, anywhere
on the drive.  A block without a valid page costs nothing and is taken at once.  Among equals the block with fewer valid pages is taken,
and then the one that changed longest ago.
"""

from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash


@lean_kernel
def victim(flash: Flash, collector: int) -> int:
    """The closed block with the highest benefit over cost: of those with one count of valid pages the first is the oldest."""
    per_block = flash.control.pages_per_block
    best, best_gain, best_valid = -1, 0, 1
    for valid in range(per_block):
        block = flash.by_valid[collector, valid]
        flash.control.gc_steps += 1
        if block >= 0:
            gain = (per_block - valid) * (flash.control.sequence + 1 - flash.blocks[block].changed)
            if gain * best_valid > best_gain * valid:
                best, best_gain, best_valid = block, gain, valid
            if valid == 0:
                return best
    return best
