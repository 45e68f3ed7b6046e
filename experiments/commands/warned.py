"""Warnings of commands: one line each on stderr."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flashsim.core.errors import FlashsimWarning
from flashsim.core.preset_files import printable


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Say each warning of flashsim's own once, although what is warned of may be met several times."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FlashsimWarning)
        usual, said = warnings.showwarning, set[str]()

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, FlashsimWarning):
                usual(message, category, *where, **more)
            elif str(message) not in said:
                said.add(str(message))
                print(f"flashsim: warning: {' '.join(printable(str(message)).split())}", file=sys.stderr)

        warnings.showwarning = show
        yield
