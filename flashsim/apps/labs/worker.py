"""A submission's own process: it has limits on time and memory and reaches no files, network or other processes.

It is started by `flashsim.apps.labs.submission` without installed packages, and imports nothing of flashsim. A line of JSON in
is a call; a line out answers it. What decides about marks never runs here. Before it runs a submission, it imports all modules that
one may use and seals itself with a filter of system calls that the kernel runs, and that nothing in the process can take off: from then on
the kernel refuses everything but to compute and to answer.
"""

import ctypes
import importlib
import json
import os
import random
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any

#: What messages call a submission, which is no file; to show a line that is no Python, Python tries to open it.
NAME = "submission"
#: Exit code after a breach, which was named in the last line.
BREACH = 3
#: Modules that a submission may import; they come in before the seal. Those with an underscore are what others need when they are called.
OFFERED = (
    "_strptime", "abc", "array", "bisect", "calendar", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal",
    "enum", "fractions", "functools", "gc", "graphlib", "hashlib", "heapq", "io", "itertools", "json", "linecache", "math", "numbers",
    "operator", "os", "pathlib", "pprint", "queue", "random", "re", "resource", "statistics", "string", "struct", "sys", "textwrap",
    "threading", "time", "traceback", "types", "typing", "warnings", "zlib",
)  # fmt: skip
#: Audited events that are named, by what they reach for; of an import with the module.
REFUSED = {
    "socket.": "network", "import socket": "network", "import _socket": "network", "import http": "network", "import urllib": "network",
    "subprocess.": "other processes", "os.fork": "other processes", "os.exec": "other processes", "os.posix_spawn": "other processes",
    "os.spawn": "other processes", "os.system": "other processes", "os.kill": "other processes", "os.startfile": "other processes",
    "pty.": "other processes", "signal.pthread_kill": "other processes", "import subprocess": "other processes",
    "import _posixsubprocess": "other processes", "import multiprocessing": "other processes", "_thread.start_new_thread": "other threads",
    "ctypes.": "foreign code", "mmap.": "memory of others", "resource.": "its own limits", "sys.setprofile": "the checker",
    "sys.settrace": "the checker", "gc.get_": "the checker", "import readline": "files",
    "shutil.": "files", "tempfile.": "files", "glob.": "files", "sqlite3.": "files", "os.chmod": "files", "os.chown": "files",
    "os.link": "files", "os.mkdir": "files", "os.remove": "files", "os.rename": "files", "os.rmdir": "files", "os.symlink": "files",
    "os.truncate": "files", "os.utime": "files", "os.setxattr": "files", "os.walk": "files", "os.fwalk": "files", "os.chdir": "files",
    **dict.fromkeys((f"import {each}" for each in ("flashsim", "algorithms", "models", "traces", "labs", "tests")), "the solutions"),
}  # fmt: skip
#: Events that read a file or a folder, which imports do.
_READS = ("open", "os.listdir", "os.scandir")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Options of `prctl`: a signal when the parent is gone, no rights by a program's file, and a filter of system calls.
_PARENT_GONE, _NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 1, 38, 22, 2


def seal(program: list[list[int]]) -> bool:
    """Put a filter of system calls on this process; False where there is none, or the kernel takes none."""
    if not program:
        return False
    prctl = ctypes.CDLL(None).prctl
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    filtered = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(code)))
    options = (_PARENT_GONE, signal.SIGKILL, 0), (_NO_NEW_PRIVILEGES, 1, 0), (_SECCOMP, _FILTER, ctypes.addressof(filtered))
    return all(prctl(*map(ctypes.c_ulong, (*option, 0, 0))) == 0 for option in options)


def guard(say: Callable[[dict[str, Any]], None]) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook, which names what a submission must not reach for, and ends the process.

    Naming is all that it is for: code in the same process finds ways around it. What stops a submission is the seal.
    """
    refused, reads, writing, name, leave = tuple(REFUSED.items()), _READS, _WRITING, NAME, os._exit
    library = tuple(each + "/" for each in sys.path)

    def breach(kind: str, what: str) -> None:
        say({"breach": kind, "what": what})
        leave(BREACH)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in reads:
            path = args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0] if isinstance(args[0], str) else ""
            inside = f"{path}/".startswith(library) and ".." not in path and "-packages" not in path
            if not (inside or path == name) or (event == "open" and isinstance(args[2], int) and args[2] & writing):
                breach("files", f"{event} {str(args[0])[:80]}")
        named = f"import {args[0]}" if event == "import" else event
        for begin, kind in refused:
            if named.startswith(begin):
                breach(kind, named)

    return hook


def work(lines: Any, say: Callable[[dict[str, Any]], None], source: list[str]) -> None:
    """Run the parts of a submission's text, and answer calls of what they define."""
    names: dict[str, Any] = {"__name__": "submission"}
    objects: list[Any] = []
    problems: list[str] = []
    for part in source:
        try:
            exec(compile(part, NAME, "exec"), names)
        except Exception as problem:
            problems.append(_in_words(problem))
    say({"answer": None})
    for line in lines:
        call = json.loads(line)
        wanted = call.get("new") or call["name"]
        if "object" not in call and wanted not in names:
            raise NameError("; ".join([f"{wanted} is not defined", *problems]))
        if "new" in call:
            objects.append(names[wanted](*call["arguments"]))
            continue
        function = getattr(objects[call["object"]], wanted) if "object" in call else names[wanted]
        answer = function(*call["arguments"])
        if call["asked"]:
            say({"answer": answer})


def _in_words(problem: BaseException) -> str:
    if isinstance(problem, NotImplementedError):
        return "it is not written yet (NotImplementedError)"
    said = " ".join(str(problem).split())[:200]
    return f"{type(problem).__name__}: {said}" if said else type(problem).__name__


def confine(seconds: int, memory: int, program: list[list[int]]) -> bool:
    """Import what a submission may use, set limits that nothing raises, close what is open, and seal; False if there is no seal."""
    import resource

    del sys.path[0]  # the folder of this file
    for each in OFFERED:
        importlib.import_module(each)
    random.seed(0)
    os.closerange(5, 256)
    for limit, value in {"CPU": seconds, "AS": memory, "FSIZE": 0, "CORE": 0, "NOFILE": 0, "NPROC": 0}.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (value, value))
    return seal(program)


def main() -> None:
    # By number, since all from 5 on is closed, and what `ctypes` is built on may keep a file open as 3.
    lines, out = os.fdopen(os.dup2(0, 3)), os.fdopen(os.dup2(1, 4), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    task = json.loads(next(lines))
    text, write, flush = json.dumps, out.write, out.flush

    def say(message: dict[str, Any]) -> None:
        write(text(message) + "\n")
        flush()

    say({"answer": confine(task["seconds"], task["memory"], task["filter"])})
    sys.addaudithook(guard(say))
    try:
        work(lines, say, task["source"])
    except MemoryError:
        say({"breach": "memory", "what": f"more than {task['memory'] >> 20} MiB"})
    except BaseException as problem:
        say({"error": _in_words(problem)})
    os._exit(0)


if __name__ == "__main__":
    main()
