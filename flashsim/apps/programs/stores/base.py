"""The contract of an embedded store: how it opens, commits and is read; a setting says what the store's documents promise with it."""

from collections.abc import Mapping
from typing import Any, Protocol

from flashsim.core.members import Family


class EmbeddedStore(Protocol):
    """A store, in a file that imports only the standard library: the store's own Python (`flashsim stores --python`) runs it.

    `_harness.py`, which calls it, opens the store in an empty folder, which is the current one, commits dictionaries of texts, one
    transaction each, and expects them of `read`.  A store that is a mapping of texts needs neither ``commit(store, values, setting)``, by
    default `update` and `sync` if there is one, nor ``read(store)``.  What `commit` returns, if anything, is the store from then on.
    """

    #: The name that pip installs it by, empty for the standard library, and the module that is imported.
    DISTRIBUTION: str
    MODULE: str
    #: Settings, each with the promises that hold when `commit` returns, and behind a colon why, in words of the store's documents:
    #: "durable", "opens" after a cut, "atomic" (all or nothing of a transaction) or "values" (of each value of it).
    SETTINGS: Mapping[str, str]
    #: Globs of files that need not be durable, such as a lock file that is mapped into memory.
    EXCLUDE: tuple[str, ...] = ()

    def open_store(self, module: Any, setting: str) -> Any:
        """Open the store in the current folder, or make it, if there is none."""


STORES = Family("flashsim.apps.programs.stores", "store", EmbeddedStore)
