"""Every flash translation layer: its plans follow the contract, and a drive works with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashsim.core.errors import FlashsimError
from flashsim.ssd.ftl.base import FAMILY
from flashsim.ssd.state.drive_state import DriveState
from flashsim.testing.contracts.drives import FtlContract
from flashsim.testing.flash_drives import drive
from tests.contract.members import each_of


@each_of(FAMILY)
class TestFtl(FtlContract):
    """Every member."""


@pytest.mark.parametrize("table", ["np.zeros(4)", "np.zeros((2, 2), np.int64)", "[0, 0]"])
def test_an_own_table_that_kernels_cannot_take_is_refused(table: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    returns = f"def own_table(parameters):\n    return {table}\n"
    path.write_text(f"import numpy as np\nfrom flashsim.ssd.ftl.page import translate\n\n\n{returns}")
    with pytest.raises(FlashsimError, match="own_table of '.*mine.py' must return an int64 vector$"):
        DriveState(drive(ftl=str(path)))
