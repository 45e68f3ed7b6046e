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
#: Machines with a filter, as `AUDIT_ARCH` numbers them, in the order of the tables' columns; None is a call that one lacks.
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: Calls that reach nothing outside: what is open, memory, clocks, sleep, and the process itself.
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "close_range": (436, 436), "lseek": (8, 62), "fstat": (5, 80),
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "mremap": (25, 216), "madvise": (28, 233),
    "futex": (202, 98), "sched_yield": (24, 124), "getcpu": (309, 168), "getrandom": (318, 278),
    "gettimeofday": (96, 169), "time": (201, None), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "restart_syscall": (219, 128),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getrusage": (98, 165), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
#: Calls that fail as not permitted, since Python makes them by the way: it looks for modules, and for the lines of a message.
UNPERMITTED: dict[str, tuple[int | None, int | None]] = {
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "stat": (4, None), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78), "getdents64": (217, 61), "getcwd": (79, 17), "ioctl": (16, 29), "fcntl": (72, 25), "uname": (63, 160),
    "sched_getaffinity": (204, 123), "prctl": (157, 167), "prlimit64": (302, 261), "getrlimit": (97, 163), "sysinfo": (99, 179),
}  # fmt: skip
#: Events that read a file or a folder, which imports do.
_READS = ("open", "os.listdir", "os.scandir")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Options of `prctl`: a signal when the parent is gone, no rights by a program's file, and a filter of system calls.
_PARENT_GONE, _NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 1, 38, 22, 2
#: Codes of instructions, places in the record, and what a filter returns: `SECCOMP_RET_ALLOW`, `_ERRNO` with EPERM, `_KILL_PROCESS`.
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _MACHINE = 0, 4
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050001, 0x80000000


def seal_program() -> list[tuple[int, int, int, int]]:
    """The instructions of the filter of system calls for this machine; none where there is no filter.

    It is a program of classic BPF (Linux, userspace-api/seccomp_filter): instructions of a code, two jumps and a value, on a record of the
    call's number and the machine. A call that the tables do not have ends the process, x86-64's second numbering (x32) included.
    """
    name = os.uname().machine if sys.platform == "linux" else ""
    if name not in MACHINES or sys.maxsize < 1 << 32:
        return []
    column = [*MACHINES].index(name)
    lines = [(_LOAD, 0, 0, _MACHINE), (_EQUALS, 1, 0, MACHINES[name]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    for table, action in ((ALLOWED, _ALLOW), (UNPERMITTED, _FAIL)):
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                lines += [(_EQUALS, 0, 1, number), (_RETURN, 0, 0, action)]
    return [*lines, (_RETURN, 0, 0, _KILL)]


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
