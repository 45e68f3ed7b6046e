"""The seal of a submission's process: a filter of system calls that the kernel runs, and that nothing in the process can take off.

A filter is a program of classic BPF (Linux, userspace-api/seccomp_filter): instructions of a code, two jumps and a value, on a record
of the call's number and the machine. A call that the tables do not have ends the process, x86-64's second numbering (x32) included.
"""

from __future__ import annotations

import platform
import sys

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
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "stat": (4, None), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78), "getdents64": (217, 61), "getcwd": (79, 17), "ioctl": (16, 29), "fcntl": (72, 25), "uname": (63, 160),
    "sched_getaffinity": (204, 123), "prctl": (157, 167), "prlimit64": (302, 261), "getrlimit": (97, 163), "sysinfo": (99, 179),
}  # fmt: skip
#: Codes of instructions, places in the record, and what a filter returns: `SECCOMP_RET_ALLOW`, `_ERRNO` with EPERM, `_KILL_PROCESS`.
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _MACHINE = 0, 4
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050001, 0x80000000


def program() -> list[tuple[int, int, int, int]]:
    """The filter's instructions for this machine; none where there is no filter."""
    name = platform.machine()
    if sys.platform != "linux" or name not in MACHINES or sys.maxsize < 1 << 32:
        return []
    column = [*MACHINES].index(name)
    lines = [(_LOAD, 0, 0, _MACHINE), (_EQUALS, 1, 0, MACHINES[name]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    for table, action in ((ALLOWED, _ALLOW), (REFUSED, _FAIL)):
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                lines += [(_EQUALS, 0, 1, number), (_RETURN, 0, 0, action)]
    return [*lines, (_RETURN, 0, 0, _KILL)]
