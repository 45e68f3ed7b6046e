"""A family's members, one after the other, as those that a contract is tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flashsim.core.members import Family


def each_of(family: Family[Any]) -> Callable[[pytest.FixtureRequest], None]:
    """A fixture for a class that inherits a contract: it is run on every member."""

    @pytest.fixture(scope="class", params=family.names())
    def each_member(request: pytest.FixtureRequest) -> None:
        request.cls.member = request.param

    return each_member
