"""Common parts of the contracts of all families: the member under test, and settings of Hypothesis."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, settings

from flashsim.core.members import Family


def examples(count: int) -> Callable[[Any], Any]:
    """Settings of a property that is tried on `count` examples: the same in every run, and in every class that inherits it.

    The first call of a kernel may compile it, so there is no deadline.
    """
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors],
    )


class Contract:
    """Properties of every member of a family; a subclass names the member."""

    #: A member's name, or the path of a Python file: beside the file of the subclass, or from the working directory.
    member: ClassVar[str] = ""
    FAMILY: ClassVar[Family[Any]]
    #: After a property that fails the rest is not tried: compiled code would write where it must not.
    STEPWISE: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The member's name, or the whole path of its file."""
        beside = Path(getattr(sys.modules.get(type(self).__module__), "__file__", None) or "").parent / self.member
        return str(beside.resolve()) if self.member.endswith(".py") and beside.is_file() else self.member

    @classmethod
    def properties(cls) -> list[str]:
        """The names of the tests, in the order in which they are written."""
        return list(dict.fromkeys(name for kind in reversed(cls.__mro__) for name in vars(kind) if name.startswith("test_")))
