"""Compiled kernels on disk: one file per kernel, signature and processor, written by whichever process needs it first."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

from numba.core.caching import _Cache
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from flashsim.core.machine_code import load
from flashsim.core.source_files import make_private

#: Ending of the files.
KEPT = ".kernel"


def file_stem(module: str, function: str) -> str:
    """What the name of a kernel's files begins with."""
    return f"{module}.{function}-"


class KeptKernels(_Cache):  # type: ignore[misc]
    """The kept files of one kernel.

    As a context, it holds the lock of what it did not find, so that no other process compiles the same meanwhile.

    Parameters
    ----------
    folder
        The folder of exactly the sources that the kernel rests on.
    counts_references
        Whether the kernel needs Numba's run-time.
    """

    def __init__(self, function: Callable[..., Any], folder: Callable[[], Path], counts_references: bool) -> None:
        self._function, self._find_folder, self._counts_references = function, folder, counts_references
        self._held = ExitStack()

    @cached_property
    def _folder(self) -> Path | None:
        """None of a function that is typed at a prompt: it has no sources."""
        return self._find_folder() if os.path.isfile(self._function.__code__.co_filename) else None

    @property
    def cache_path(self) -> str:
        return str(self._folder or "")

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if self._folder is None:
            return None
        path = self._path(sig, target_context)
        if not path.is_file():
            self._lock(path.with_suffix(".lock"))
        return self._load(path, sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel; where nothing can be written, every process compiles it anew."""
        if self._folder is None or data.library.has_dynamic_globals:
            return
        code, descriptor, environment, signature, object_mode, lifted, _, reload_init, environments = data._reduce()
        content = dumps((code, descriptor, environment, signature, object_mode, lifted, "", reload_init, environments))
        path = self._path(sig, data.target_context)
        beside = path.with_suffix(f".{uuid4().hex}")
        with suppress(OSError):
            make_private(path.parent)
            try:
                beside.write_bytes(content)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    def _load(self, path: Path, sig: Any, target_context: Any) -> Any:
        """The kept kernel as Numba loads it, but without all that Numba loads to compile, which takes longer than the rest of a start."""
        try:
            content = path.read_bytes()
            if self._counts_references:
                rtsys.initialize(target_context)
            kept = load(target_context, pickle.loads(content))
        except Exception:  # not there, or damaged: whatever it holds instead may come out of it
            return None
        return kept if kept.signature.args == normalize_signature(sig)[0] else None

    def _lock(self, path: Path) -> None:
        with suppress(OSError):
            make_private(path.parent)
            file = self._held.enter_context(path.open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
            self._held.callback(path.unlink, missing_ok=True)

    def _path(self, sig: Any, target_context: Any) -> Path:
        assert self._folder is not None
        cells = [cell.cell_contents for cell in self._function.__closure__ or ()]
        parts = (str(normalize_signature(sig)), str(target_context.codegen().magic_tuple()), self._function.__code__.co_code, dumps(cells))
        digest = hashlib.sha256(b"\0".join(part.encode() if isinstance(part, str) else part for part in parts))
        return self._folder / f"{file_stem(self._function.__module__, self._function.__qualname__)}{digest.hexdigest()[:16]}{KEPT}"
