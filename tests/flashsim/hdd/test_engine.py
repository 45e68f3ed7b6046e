"""The engine's compiled code is found again by the next process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_queue import one_command_each
from flashsim.core.kernel import is_compiled
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, make_requests
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.disks import serve, small_drive
from tests.cases import with_each
from tests.yardstick import seconds

#: Runs engine and specification, and prints how many kernels were compiled rather than read from the cache.
PROGRAM = """
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    from flashsim.core.request import READ, make_requests
    from flashsim.hdd.engine.drive import HddEngine
    from flashsim.hdd.specification.drive import HddSpecification
    from flashsim.testing.disks import serve, small_drive
    for model in (HddEngine, HddSpecification):
        serve(model(small_drive(queue_depth=4, scheduler="sptf")), make_requests(READ, [0, 51200, 512], 512))
print(len(recorder.buffer))
"""


@pytest.mark.skipif(not is_compiled(), reason="kernels run as plain Python")
def test_a_second_process_compiles_nothing() -> None:
    for _ in range(2):
        finished = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=seconds(250))
    assert finished.stdout.split() == ["0"]


def test_queued_requests_are_served_first_come_first_served() -> None:
    requests = make_requests(READ, np.array([900, 3, 700, 10, 1]) * 512, 512)
    completions = serve(HddEngine(small_drive(queue_depth=8)), requests)
    assert completions["id"].tolist() == [0, 1, 2, 3, 4]
    assert completions["started"].tolist() == [0] * 5


@with_each("kind", [HddEngine, HddSpecification])
@with_each(
    ("operation", "offset", "length", "message"),
    [(READ, 100, 512, "command: 512 B at 100"), (WRITE, 0, 700, "command: 700 B at 0"), (READ, 0, 0, "command: 0 B"),
     (WRITE, -512, 512, "command: 512 B at -512"), (READ, 512 * 1024, 512, "1024 sectors of 512 B"), (7, 0, 512, "operation: 7")],
)  # fmt: skip
def test_commands_that_a_drive_cannot_serve_are_refused(
    kind: type[HddEngine | HddSpecification], operation: int, offset: int, length: int, message: str
) -> None:
    requests = make_requests([READ, operation], [0, offset], [512, length])
    with pytest.raises(InvalidParameterError, match=message):
        kind(small_drive()).submit(requests, one_command_each(requests), 0)


def test_what_moves_no_data_may_lie_anywhere() -> None:
    requests = make_requests([FLUSH, TRIM], [7, -1], 0)
    assert len(serve(HddEngine(small_drive()), requests)) == 2
