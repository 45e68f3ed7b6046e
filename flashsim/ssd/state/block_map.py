"""How the erase blocks of a drive stand: what each holds, and how often it was erased."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import RETIRED_BLOCK


@dataclass(frozen=True)
class BlockMap:
    """Counts by die and block of the die (plane by plane), shape (dies, blocks) each; a block has `pages` flash pages."""

    valid: Integers
    written: Integers
    erases: Integers
    retired: npt.NDArray[np.bool_]
    pages: int


def block_map(state: DriveState) -> BlockMap:
    parameters = state.parameters
    shape = (parameters.dies, parameters.blocks_per_die)
    valid, written, erases, standing = (state.blocks[name].reshape(shape).copy() for name in ("valid", "written", "erases", "state"))
    return BlockMap(valid, written, erases, standing == RETIRED_BLOCK, parameters.pages_per_block)
