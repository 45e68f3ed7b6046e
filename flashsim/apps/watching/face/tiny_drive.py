"""``fs.tiny_drive``: a small flash drive to take apart, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flashsim.apps.watching.flash_drawing import draw_pages
from flashsim.experiments.replaying.report import block_heat
from flashsim.operations.fields import count
from flashsim.operations.operation import check_arguments, with_named_methods
from flashsim.operations.outcome import Picture
from flashsim.ssd.lab.drive import LAB_PAGES, LabDrive


@with_named_methods
class TinyDrive(LabDrive):
    """A drive without a clock that draws itself; see `flashsim.ssd.lab.drive.LabDrive` for what it does."""

    def plot(self, title: str = "") -> Picture:
        """One cell per flash page, one column per block: valid, invalid, free, in flight or torn."""
        return Picture(draw_pages(self, title))

    def blocks(self) -> Picture:
        """Valid share and erases of each erase block."""
        return Picture(block_heat(self.state.block_map()))

    def measure(self, writes: Sequence[int]) -> float:
        """Fill the drive, bring it into its steady state by the first half of the writes, and count in the second.

        Returns
        -------
        float
            Write amplification: flash pages programmed over pages that the host wrote.
        """
        self.write_all(range(self.pages))
        self.write_all(writes[: len(writes) // 2])
        self.count_anew()
        self.write_all(writes[len(writes) // 2 :])
        amplification: float = self.statistics()["write_amplification"]
        return amplification


@check_arguments
def tiny_drive(pages: int = LAB_PAGES, **choices: Any) -> TinyDrive:
    """A drive of 64 blocks and no clock, whose every flash operation can be carried out by itself.

    Parameters
    ----------
    pages
        Logical pages.
    **choices
        Other values, such as ``gc="fifo"``, ``gc="my_policy.py"`` or ``ftl="fast"`` (`flashsim.ssd.parameters.SsdParameters`).

    Examples
    --------
    >>> import flashsim as fs
    >>> drive = fs.tiny_drive()
    >>> drive.write(5)
    program block 0 page 0: logical page 5 (host)
    """
    return TinyDrive(count(pages, "pages"), **choices)
