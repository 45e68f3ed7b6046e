"""Protocols of objects that a higher room hands to a lower one."""

from collections.abc import Sequence
from typing import Any, Protocol

from flashsim.core.request import Completions, Requests

Label = str | list[str]  #: The file that requests access, or a name for each request.


class Sink(Protocol):
    """Takes every request that a driver makes, as it is made."""

    def record(self, requests: Requests, completions: Completions | None, label: Label, after: int | None = None) -> None:
        """Take requests, shape (n,), and their completions in the same order (None where nothing is timed).

        `after` is the number, among all recorded so far, of the request that those without a
        dependency waited for (-1: none); without it, that is the one which completed last.
        """

    def close(self) -> None:
        """No more requests follow."""


class RunObserver(Protocol):
    """Takes the requests that a serial run makes on one machine, with what they took, phase by phase."""

    def observe(self, phases: Sequence[tuple[str, int]], requests: Requests, completions: Completions, at_once: bool) -> None:
        """Take requests and their completions, shape (n,): each after the one before, or all `at_once`.

        `phases` are names, each with the number of requests, of these, at which it ends.
        """


class Progress(Protocol):
    """Is told how far long work has come."""

    def __call__(self, done: float, total: float, message: str = "") -> Any:
        """`done` of `total` units are finished."""
