"""Policies reach kernels as addresses in one vector: each call goes to the member that was named, and its errors are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
from numba import types

from flashsim.core.errors import FlashsimError
from flashsim.core.kernel import is_compiled, kernel_of, lean_kernel
from flashsim.core.members import Family
from flashsim.core.policies import Policies, Policy, policy_vector
from flashsim.core.records import VECTOR
from flashsim.core.request import Integers


class Rule(Protocol):
    """A member of the family."""

    first: Callable[[Integers, int], int]
    second: Callable[[Integers, int], int]


FAMILY = Family("flashsim.hdd.scheduler", "rule", Rule)
FUNCTION = types.FunctionType(types.int64(VECTOR, types.int64))
FIRST, SECOND = (Policy(FAMILY, attribute, place, FUNCTION) for place, attribute in enumerate(("first", "second")))
first_of, second_of = FIRST.accessor(), SECOND.accessor()

MEMBER = """
from flashsim.core.kernel import lean_kernel

@lean_kernel
def first(values, index):
    return values[index] * {factor}

@lean_kernel
def second(values, index):
    values[index] += {factor}
    return 0
"""


@lean_kernel
def _both(policies: Policies, values: Integers, index: int) -> int:
    second = second_of(policies)
    return first_of(policies)(values, index) + second(values, index)


@kernel_of(types.int64(VECTOR, VECTOR, types.int64))
def _from_python(policies: Policies, values: Integers, index: int) -> int:
    return _both(policies, values, index)


def write_member(folder: Path, factor: int) -> str:
    path = folder / f"times_{factor}.py"
    path.write_text(MEMBER.format(factor=factor))
    return str(path)


def call(policies: Policies, values: Integers) -> int:
    return int(_from_python(policies, values, 1))


def test_each_call_goes_to_the_member_that_was_named(tmp_path: Path) -> None:
    three, seven = write_member(tmp_path, 3), write_member(tmp_path, 7)
    values = np.array([1, 10, 100])
    assert call(policy_vector({FIRST: three, SECOND: seven}), values) == 30
    assert values.tolist() == [1, 17, 100]
    assert call(policy_vector({SECOND: three, FIRST: seven}), values) == 17 * 7  # by their places, in whatever order they are named
    assert values.tolist() == [1, 20, 100]


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")
def test_one_array_crosses_for_all_policies(tmp_path: Path) -> None:
    policies = policy_vector({FIRST: write_member(tmp_path, 3), SECOND: write_member(tmp_path, 3)})
    assert policies.dtype == np.int64 and policies.shape == (2,)


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def first(values, index):\n    return 0\n", "must be decorated"),
        (
            "from flashsim.core.kernel import lean_kernel\n@lean_kernel\ndef first(values, index):\n    return values.missing\n",
            "does not compile",
        ),
        (
            "from flashsim.core.kernel import lean_kernel\n@lean_kernel\ndef first(values, index):\n    raise ValueError\n",
            "does not compile",
        ),
    ],
)
def test_what_is_wrong_with_a_member_is_told_in_one_line(tmp_path: Path, source: str, message: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(source + "def second(values, index):\n    return 0\n")
    with pytest.raises(FlashsimError, match=message) as problem:
        policy_vector({FIRST: str(path), SECOND: str(path)})
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("parameters", ["", "values", "values, index, more"])
def test_a_member_that_takes_other_parameters_is_refused_in_one_line(tmp_path: Path, parameters: str) -> None:
    path = tmp_path / "other.py"
    decorated = f"from flashsim.core.kernel import lean_kernel\n@lean_kernel\ndef first({parameters}):\n    return 0\n"
    path.write_text(decorated + "def second(values, index):\n    return 0\n")
    with pytest.raises(FlashsimError, match=f"first of '.*' takes {len(parameters.split())} parameters, but the family's takes 2$"):
        policy_vector({FIRST: str(path), SECOND: str(path)})


def test_a_member_without_the_function_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lacking.py"
    path.write_text("first: Any = None\n")
    with pytest.raises(FlashsimError):
        policy_vector({FIRST: str(path), SECOND: str(path)})
