"""Every partition method, whichever files the family's folder holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from algorithms.partitioning.base import PARTITIONING, PartitionBuffers, PartitionParameters, bucket_layouts, check_buffers
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.testing.contracts.operators import PartitionContract
from flashsim.testing.strict_driver import relation_file
from tests.contract.members import each_of


@each_of(PARTITIONING)
class TestPartitionMethods(PartitionContract):
    """Every member."""


@pytest.mark.parametrize("parameters", [{"sub_buffer": -1}, {"strands": 0}])
def test_unfit_parameters_are_refused(parameters: dict[str, int]) -> None:
    with pytest.raises(InvalidParameterError, match="it must be at least"):
        PartitionParameters(**parameters)  # type: ignore[arg-type]


def test_pages_that_are_no_part_of_the_relations_are_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    own = "def page_size(layouts, buffers, parameters):\n    return 300"
    mine.write_text(f"from algorithms.partitioning.traditional import distribute\n\n\n{own}\n")
    with pytest.raises(InvalidParameterError, match=r"page size: 300 B by partition method .*mine\.py, but it must divide 512 B"):
        bucket_layouts([relation_file("r", np.arange(5))], PartitionBuffers(1, 1, 1), PartitionParameters(str(mine)))


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="partition method: 'n-hush' is unknown; did you mean n-hash"):
        check_buffers([relation_file("r", np.arange(5))], PartitionBuffers(1, 1, 1), PartitionParameters("n-hush"))
