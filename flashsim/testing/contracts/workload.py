"""The contract of device workloads: runs stay in their area, wait for what they should, and are the same for the same seed."""

from collections.abc import Iterator

import numpy as np

from flashsim.core.request import READ, WRITE
from flashsim.core.units import GIB, KIB, MIB
from flashsim.testing.contract import Contract
from traces.workload.base import FAMILY, WorkloadRun, WorkloadSpace

_SPACES = (
    WorkloadSpace(4 * MIB),
    WorkloadSpace(GIB, quick=True),
    WorkloadSpace(GIB, least=4096, write=False, count=100),
    WorkloadSpace(5 * GIB + 32 * KIB, count=1),
)


class WorkloadContract(Contract):
    """Properties of a device workload (`traces.workload.base`)."""

    FAMILY = FAMILY

    def runs(self, space: WorkloadSpace = _SPACES[1]) -> list[WorkloadRun]:
        runs: Iterator[WorkloadRun] = FAMILY.load(self.name).runs(space)
        return list(runs)

    def test_requests_stay_in_the_area_on_multiples_of_the_unit(self) -> None:
        """In a small area and in large ones, and without a write where there may be none."""
        for space in _SPACES:
            runs = self.runs(space)
            assert runs, f"there are no runs in {space}"
            for run in runs:
                requests, what = run.requests(1), f"{run} in {space}"
                offset, length = requests["offset"], requests["length"]
                assert len(requests) == space.count, f"{len(requests)} requests instead of {space.count}: {what}"
                assert (offset >= 0).all() and (offset + length <= space.size).all(), f"requests leave the area: {what}"
                assert (offset % space.least == 0).all() and (length % space.least == 0).all(), f"no multiples of {space.least} B: {what}"
                assert (length > 0).all() and np.isin(requests["operation"], (READ, WRITE)).all(), f"not all are reads and writes: {what}"
                assert space.write or not run.writes, f"nothing may be written: {what}"
                assert run.writes or (requests["operation"] == READ).all(), f"it says that it does not write: {what}"

    def test_a_process_has_one_request_at_a_time(self) -> None:
        for run in self.runs():
            requests = run.requests(1)
            for stream in np.unique(requests["stream"]):
                rows = np.flatnonzero(requests["stream"] == stream)
                assert requests["dependency"][rows].tolist() == [-1, *rows[:-1]], f"a request does not wait for the one before: {run}"
                assert requests["think"][rows[0]] == 0, f"the first request waits: {run}"

    def test_the_seed_decides_and_runs_differ_by_their_parameter(self) -> None:
        first, again = ([run.requests(1) for run in self.runs()] for _ in range(2))
        same = len(first) == len(again) and all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
        assert same, "the same seed makes other requests"
        runs = self.runs(WorkloadSpace(GIB))
        assert len({(run.name, run.value) for run in runs}) == len(runs), "two runs have the same name and value"
        for pattern in {run.name for run in runs}:
            values = [run.value for run in runs if run.name == pattern]
            assert values == sorted(values) and len(values) > 1, f"values of {pattern} do not ascend, or there is one: {values}"

    def test_its_parameter_has_a_name_and_a_unit(self) -> None:
        member = FAMILY.load(self.name)
        assert member.PARAMETER and member.UNIT in ("bytes", "ns", "count"), f"PARAMETER is {member.PARAMETER!r}, UNIT {member.UNIT!r}"
