"""Kernels compiled beforehand by processes side by side, each of which leaves its parts in the cache.

A part is a function that `flashsim.core.kernel.kernel_of` decorates, or what a policy's member defines.  They are found in the sources, so
that nothing is imported to know them.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from flashsim.core.activity import activity
from flashsim.core.kept_kernels import KEPT, file_stem
from flashsim.core.kernel import entry, folder_of_module, is_compiled
from flashsim.core.members import Family
from flashsim.core.policies import Policy
from flashsim.core.processes import cores, python_command
from flashsim.core.source_files import kernels_folder, make_private, source_tree

#: A function of `kernel_of` that is a part: what the decorator says of its seconds, and its name.
_ONLY = re.compile(rb"^@kernel_of\((?!.*on_demand=True)(?:.*seconds=(\d+))?.*\)\ndef (\w+)", re.MULTILINE)
#: Seconds that a part takes to compile, about: a member with all its kernels, a policy, and any other that does not say it.
_MEMBER_TAKES, _POLICY_TAKES, _OTHER_TAKES = 1.5, 1.0, 0.4
#: What takes fewer seconds is left to whoever calls it: a process takes that long to start.
_LEAST = 1.5
#: Seconds between two looks at whether all is compiled.
_POLL = 0.1
#: Processes at the same time, at most: no engine has more large parts.
_MOST = 4


@dataclass(frozen=True)
class Part:
    """Something that is compiled at once."""

    #: Where it stands.
    module: str
    function: str
    #: Of a policy, the module that defines the family; or, as ``module:function``, what compiles a member that is given by its name.
    family: str = ""
    #: How long it takes, about.
    seconds: float = _OTHER_TAKES

    def is_kept(self) -> bool:
        return any(folder_of_module(self.module).glob(f"{file_stem(self.module, self.function)}*{KEPT}"))

    def compile(self) -> None:
        """Compile it in this process, unless the cache holds it."""
        module = import_module(self.module)
        if not self.family:
            entry(getattr(module, self.function))
            return
        family, _, compiles = self.family.partition(":")
        member = self.module.rpartition(".")[2].replace("_", "-")
        if compiles:
            getattr(import_module(family), compiles)(member)
            return
        for policy in vars(import_module(family)).values():
            if isinstance(policy, Policy) and policy.attribute == self.function:
                policy.function(member)


def parts_of(modules: Iterable[str], policies: Iterable[tuple[Policy, str]] = ()) -> list[Part]:
    """Kernels that some modules, and all that they import, compile, in the order of their begin.

    Members of families (`policies`) are compiled as well; those from files of the user's own are left out.
    """
    tree = source_tree()
    texts = {module: tree.sources[module] for module in sorted(tree.closure(modules))}
    parts = []
    for module, text in texts.items():
        parts += [Part(module, name.decode(), seconds=float(seconds or _OTHER_TAKES)) for seconds, name in _ONLY.findall(text)]
    for policy, member in policies:
        module = f"{policy.family.package}.{member.replace('-', '_')}"
        if module in tree.sources:
            parts.append(Part(module, policy.attribute, f"{policy.family.package}.base", seconds=_POLICY_TAKES))
    return sorted(parts, key=lambda part: -part.seconds)


def member_parts(family: Family[Any], names: Iterable[str], functions: Iterable[str], compiles: str) -> list[Part]:
    """Members that have kernels of their own, a part each, so that several are compiled side by side; files of one's own are left out.

    `functions` are names of kernels that members may have; `compiles`, as ``module:function``, compiles all of a member, given its name.
    """
    parts = []
    for module in dict.fromkeys(f"{family.package}.{name.replace('-', '_')}" for name in names):
        text = source_tree().sources.get(module, b"")
        own = [each for each in functions if f"\ndef {each}(".encode() in text]
        parts += [Part(module, each, compiles, seconds=_MEMBER_TAKES) for each in own[-1:]]
    return parts


class Compilation:
    """Parts that are being compiled in the background, by as many processes as there are cores; those that the cache holds are left out.

    What cannot be compiled so, since a process ended or has nowhere to write to, is left to whoever calls it.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        to_compile = [part for part in parts if not part.is_kept()] if is_compiled() else []
        self._queue, self._complete = to_compile, set[Part]()
        self._seconds, self._cores = sum(part.seconds for part in to_compile), min(cores(), _MOST)
        self._lock = threading.Lock()
        self._workers: set[subprocess.Popen[str]] = set()
        if self._seconds < _LEAST or not sys.executable or not can_write():
            self._queue, self._threads = [], []
        else:
            self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(min(self._cores, len(to_compile)))]
        for thread in self._threads:
            thread.start()

    @property
    def seconds(self) -> float:
        return self._seconds / self._cores

    @property
    def share(self) -> float:
        return sum(part.seconds for part in self._complete) / self._seconds if self._seconds else 1.0

    def wait(self, what: str) -> None:
        """Wait for its end, and tell how it comes along; an interrupt ends it.  `what` is compiled, in words."""
        if self.is_over(0):
            return
        try:
            with activity(f"compiling {what}, once (about {self.seconds:.0f} s)") as progress:
                while not self.is_over(_POLL):
                    progress(self.share, 1)
        except BaseException:
            self.stop()
            raise

    def is_over(self, seconds: float) -> bool:
        for thread in self._threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        with self._lock:
            self._queue.clear()
            for worker in self._workers:
                worker.kill()

    def _serve(self) -> None:
        with suppress(OSError), _worker() as worker:
            with self._lock:
                self._workers.add(worker)
            answer = "ready"
            while answer and (part := self._next()) is not None:
                answer = _ask(worker, part)
                with self._lock:
                    self._complete.add(part)

    def _next(self) -> Part | None:
        with self._lock:
            return self._queue.pop(0) if self._queue else None


def can_write() -> bool:
    """True if there is a folder for compiled kernels."""
    with suppress(OSError):
        make_private(kernels_folder())
    return os.access(kernels_folder(), os.W_OK | os.X_OK)


def _worker() -> subprocess.Popen[str]:
    """A process that compiles; in a session of its own, so that a terminal interrupts only this one."""
    pipe = subprocess.PIPE
    command = python_command("flashsim.core.compiling:work")
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, start_new_session=True)


def _ask(worker: subprocess.Popen[str], part: Part) -> str:
    """Have a process compile a part; what it says then, nothing if it ended instead."""
    assert worker.stdin and worker.stdout
    with suppress(OSError):
        worker.stdin.write(json.dumps([part.module, part.function, part.family]) + "\n")
        worker.stdin.flush()
        return worker.stdout.readline()
    return ""


def work() -> None:
    """Compile what the standard input says, part after part; end with it, whatever is being done: then nobody waits for it any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        part = Part(*json.loads(lines.get()))
        try:
            part.compile()
        except Exception as problem:  # whoever needs it meets it again
            answers.write(f"{type(problem).__name__}\n")
        else:
            answers.write("compiled\n")
        answers.flush()
