"""A family's members, one after the other, as those that a contract is tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flashsim.core.members import Family
from flashsim.testing.contract import Contract


def each_of(family: Family[Any]) -> Callable[[type[Contract]], type[Contract]]:
    """Run a class that inherits a contract on every member."""

    @pytest.fixture(scope="class", params=family.names(), autouse=True)
    @classmethod
    def each_member(cls: type[Contract], request: pytest.FixtureRequest) -> None:
        cls.member = request.param

    def on_each(kind: type[Contract]) -> type[Contract]:
        kind.each_member = each_member
        return kind

    return on_each
