"""What designs do alike with pages that move."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.storage.extension.design import CHECKPOINTED, DIRTY_PAGE, DROP, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.state import CHECKPOINT, FILL, Extension


@lean_kernel
def nothing(ext: Extension, page: int, flags: int) -> int:
    """A page comes into memory, and nothing else changes."""
    return 0


@lean_kernel
def give_up(ext: Extension, page: int) -> int:
    """A copy that is not the newest any more leaves its frame."""
    return DROP


@inlined_kernel
def is_admitted(ext: Extension, flags: int) -> bool:
    """Whether a page that leaves memory may go to the SSD: it was read at random, or the SSD is being filled (tau)."""
    return ext.numbers[FILL] > 0 or not flags & SEQUENTIAL


@inlined_kernel
def must_reach_the_disk(ext: Extension, flags: int) -> bool:
    """Whether a page is newer than on disk and has to go there, whatever the SSD takes, because of a checkpoint."""
    return flags & DIRTY_PAGE != 0 and (ext.numbers[CHECKPOINT] != 0 or flags & CHECKPOINTED != 0)


@lean_kernel
def write_back(ext: Extension, page: int, flags: int) -> int:
    """Whatever leaves memory goes to the SSD alone, but for checkpoints."""
    return TO_DISK if must_reach_the_disk(ext, flags) else TO_SSD
