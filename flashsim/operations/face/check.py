"""``flashsim check`` and ``fs.check``: a member in a file of one's own, held against its family's contract."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd

from flashsim.core.errors import FlashsimError
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.operations.fields import Duration, Name
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome

if TYPE_CHECKING:  # needs an extra
    from flashsim.testing.checking import PropertyVerdict


class CheckOutcome(Outcome):
    """The properties of a family's contract, and whether the member has them."""

    def __init__(self, verdicts: list[PropertyVerdict], kind: str, path: str) -> None:
        self.failures = sum(each.verdict == "FAILS" for each in verdicts)
        found = f"{self.failures} of {len(verdicts)} properties fail" if self.failures else "it keeps the contract"
        super().__init__(verdicts, f"{path}, a {kind}: {found}")
        self.status = int(self.failures > 0)

    def summary(self) -> pd.DataFrame:
        """A row a property: its verdict, the reason, and the smallest case that fails."""
        rows = [(each.contract_property, each.verdict, each.reason, each.case) for each in self.result]
        return pd.DataFrame(rows, columns=["property", "verdict", "reason", "case"])

    def as_dict(self) -> dict[str, Any]:
        return {"failures": self.failures, "properties": self.summary().to_dict("records")}

    def printout(self) -> Iterator[Part]:
        yield from (self.title, "")
        for each in self.result:
            yield f"{each.verdict:16}{each.contract_property}"
            for words in (each.reason, f"smallest case: {each.case}" if each.case else ""):
                if words:
                    yield Explanation(f"{'':16}{words}", " " * 16)
        yield from ("", next_steps("docs/how-to/test-your-own-part.md makes the same properties tests of pytest"))


@operation
def check(
    file: Annotated[str, Name("A Python file that defines a policy, join, planner or other member.", "FILE.py", argument=True, reads=True)],
    *,
    limit: Annotated[Any, Duration("CPU time limit per property; a property that exceeds it fails.")] = "60s",
) -> CheckOutcome:
    """Test your own policy, join or other part.

    The family is found by what the file defines. The exit code is 1 if a property fails. The same properties are tests of pytest by
    inheriting from the family's class in flashsim.testing.

    Examples::

        flashsim check mine.py
        flashsim check mine.py --json verdicts.json

    Examples
    --------
    >>> import flashsim as fs
    >>> from algorithms.replacement import lru
    >>> fs.check(lru.__file__).status
    0
    """
    try:
        checking = import_module("flashsim.testing.checking")
    except ImportError as problem:
        raise FlashsimError(str(problem)) from None
    contract = checking.contract_of(Path(file))
    return CheckOutcome(list(checking.verdicts(contract, file, limit)), contract.FAMILY.kind, file)
