"""What every join promises, whichever files the family's folder holds."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from algorithms.joins.base import JOINS, JoinParameters, plan
from algorithms.partitioning.base import PARTITIONING
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.options import options_in
from flashsim.testing.contracts.joins import JoinContract, options_of, relations
from flashsim.testing.strategies import EXTREME_KEYS
from flashsim.testing.strict_driver import run
from models.allocation.buffers import NestedLoopsAllocation

NAMES = JOINS.names()
#: Joins that make buckets, by each of the ways to do so but the usual one.
BUCKETS = [(name, method) for name in NAMES if "partition" in options_in(JOINS.load(name).OPTIONS) for method in PARTITIONING.names()]
WAYS = [(name, "traditional") for name in NAMES] + [way for way in BUCKETS if way[1] != "traditional"]


@pytest.fixture(scope="class", params=WAYS, ids="-".join)
def each_member(request: pytest.FixtureRequest) -> None:
    request.cls.member, request.cls.method = request.param


@pytest.mark.usefixtures("each_member")
class TestJoins(JoinContract):
    """Every member, by every way to make buckets."""


def test_messages_name_parameter_value_and_bound():
    r, s = relations("grace-hash", np.arange(100), np.arange(300))
    with pytest.raises(InvalidParameterError, match="allocation: NestedLoopsAllocation, but this join needs a GraceAllocation"):
        plan("grace-hash", r, s, JoinParameters(100), NestedLoopsAllocation(50, 50))
    with pytest.raises(UnknownNameError, match="join: 'grace-hush' is unknown; did you mean grace-hash"):
        plan("grace-hush", r, s, JoinParameters(100))


def digest() -> str:
    """Rows, requests and work of every join on one small case."""
    rng = np.random.default_rng(11)
    left = np.where(rng.random(90) < 0.3, 9, rng.integers(-50, 50, 90))
    right = np.concatenate([rng.integers(-50, 50, 90), EXTREME_KEYS])
    state = hashlib.sha256()
    for name, method in WAYS:
        outcome = run(plan(name, *relations(name, left, right, 4), JoinParameters(20, options=options_of(name, partition=method))), 20)
        work = sorted((kind.value, count) for kind, count in outcome.work.items())
        state.update(repr((outcome.extents, outcome.pairs.tolist(), work)).encode())
    return state.hexdigest()


def test_without_the_compiler_everything_is_the_same():
    root = Path(__file__).parents[2]
    code = "import warnings; warnings.simplefilter('error'); from tests.contract.test_joins import digest; print(digest())"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root)}
    plain = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=True)
    assert plain.stdout.strip() == digest()
