"""The parameters of a hard disk drive, checked as a whole."""

from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import FLUSH, READ, WRITE, Commands, Requests
from flashsim.hdd import checks
from flashsim.hdd.description import DriveDescription
from flashsim.hdd.state.layout import sectors_of


@dataclass(frozen=True, kw_only=True)
class HddParameters(DriveDescription):
    """A drive; make it with `flashsim.core.parameters.build`."""

    def __post_init__(self) -> None:
        checks.check_sizes(self)
        checks.check_names(self)
        checks.check_layout(self)
        checks.check_arm(self)
        if self.capacity == 0:
            object.__setattr__(self, "capacity", sectors_of(self) * self.sector_size)
        checks.check_capacity(self)

    def check(self, requests: Requests, commands: Commands) -> None:
        """Refuse commands that lie outside the drive or are not in whole sectors."""
        if not _is_one_refused(np.ascontiguousarray(requests), np.ascontiguousarray(commands), self.sector_size, self.capacity):
            return
        offset, length = commands["offset"], commands["length"]
        moves_data = (requests["operation"][commands["request"]] & ~1) == 0  # READ and WRITE
        bad = (offset % self.sector_size != 0) | (length % self.sector_size != 0) | (length <= 0)
        bad |= (offset < 0) | (offset > self.capacity - length)
        bad &= moves_data
        if bad.any():
            row = int(np.argmax(bad))
            bound = f"the drive has {self.capacity // self.sector_size} sectors of {self.sector_size} B"
            raise InvalidParameterError("command", f"{length[row]} B at {offset[row]}", bound)
        unknown = (requests["operation"] < READ) | (requests["operation"] > FLUSH)
        if unknown.any():
            raise InvalidParameterError("operation", int(requests["operation"][unknown][0]), f"it must be {READ} to {FLUSH}")


@lean_kernel
def _is_one_refused(requests: Requests, commands: Commands, sector_size: int, capacity: int) -> bool:
    """Whether a command is to be refused; `HddParameters.check` says why."""
    for row in range(requests.shape[0]):
        if requests[row]["operation"] < READ or requests[row]["operation"] > FLUSH:
            return True
    for row in range(commands.shape[0]):
        request, offset, length = commands[row]["request"], commands[row]["offset"], commands[row]["length"]
        if request < 0 or request >= requests.shape[0]:
            return True
        if requests[request]["operation"] in (READ, WRITE) and (
            offset % sector_size != 0 or length % sector_size != 0 or length <= 0 or offset < 0 or offset > capacity - length
        ):
            return True
    return False
