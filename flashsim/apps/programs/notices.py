"""Notices of a program's system calls before the kernel takes them (seccomp user notification), for which no privilege is needed.

A filter that the program inherits stops a thread at a watched call.  The process that holds the listener can then read the memory and the
descriptors of the program, and lets the call go on.  A program whose listener is gone gets ENOSYS for these calls.
"""

import array
import ctypes
import fcntl
import os
import platform
import select
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

#: By machine: its number in filters (AUDIT_ARCH), the number of seccomp, and those of the calls that can be watched.
_MACHINES: Mapping[str, tuple[int, int, dict[str, int]]] = {
    "x86_64": (0xC000003E, 317, {"mmap": 9, "msync": 26, "fsync": 74, "fdatasync": 75, "sync_file_range": 277, "sync": 162, "syncfs": 306}),
    "aarch64": (
        0xC00000B7,
        277,
        {"mmap": 222, "msync": 227, "fsync": 82, "fdatasync": 83, "sync_file_range": 84, "sync": 81, "syncfs": 267},
    ),
}
#: Calls that have one number on all machines.
_EVERYWHERE = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}
_GET_DESCRIPTOR = 438
#: Instructions of a filter: load a word, jump if equal, jump if bits are set, return; and what it returns.
_LOAD, _EQUAL, _BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_NOTIFY, _ALLOW = 0x7FC00000, 0x7FFF0000
#: Requests of the listener, and their layouts: a notice, and the answer that lets a call go on.
_RECEIVE, _SEND, _GO_ON = 0xC0502100, 0xC0182101, 1
_NOTICE, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_NO_NEW_PRIVILEGES, _SET_FILTER, _NEW_LISTENER = 38, 1, 8
_MAP_SHARED, _PROT_WRITE, _NO_FILE = 1, 2, 0xFFFFFFFF


class Notice(NamedTuple):
    """A thread is about to make a call."""

    thread: int
    call: str
    arguments: tuple[int, ...]


@dataclass
class Listener:
    """Takes notices of a program from its first call on.

    A process that is to become the program calls `install` after it was forked; this one calls `listen`.
    """

    def __post_init__(self) -> None:
        self._own, self._other = socket.socketpair()

    def install(self) -> None:
        """Watch this process and those that it makes from now on."""
        arch, seccomp, names = _MACHINES[platform.machine()]
        code = _program(arch, names | _EVERYWHERE)
        instructions = ctypes.create_string_buffer(code, len(code))
        header = struct.pack("@HP", len(code) // 8, ctypes.addressof(instructions))
        library = ctypes.CDLL(None, use_errno=True)
        library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        descriptor = library.syscall(seccomp, _SET_FILTER, _NEW_LISTENER, ctypes.create_string_buffer(header, len(header)))
        if descriptor >= 0:
            self._other.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])
        self._other.close()

    def listen(self, take: Callable[[Notice], None]) -> bool:
        """Hand on notices until all processes have ended, and let each call go on; False at once where notices are not to be had."""
        self._other.close()
        with self._own:
            ancillary = self._own.recvmsg(1, socket.CMSG_SPACE(4))[1]
        if not ancillary:
            return False
        (listener,) = struct.unpack("i", ancillary[0][2][:4])
        _, _, names = _MACHINES[platform.machine()]
        calls = {number: name for name, number in (names | _EVERYWHERE).items()}
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        try:
            while any(event & select.POLLIN for _, event in poll.poll()):
                notice = bytearray(_NOTICE.size)
                try:
                    fcntl.ioctl(listener, _RECEIVE, notice)
                except OSError:  # the thread was killed meanwhile
                    continue
                number, thread, _, call, _, _, *arguments = _NOTICE.unpack(notice)
                try:
                    take(Notice(thread, calls[call], tuple(arguments)))
                finally:
                    with suppress(OSError):
                        fcntl.ioctl(listener, _SEND, bytearray(_ANSWER.pack(number, 0, 0, _GO_ON)))
        finally:
            os.close(listener)
        return True


def is_possible() -> bool:
    """Whether this machine's calls are known; whether the kernel has notices shows when a filter is installed."""
    return platform.machine() in _MACHINES


def descriptor_of_process(process: int, number: int) -> int:
    """A copy of a descriptor of another process; an `OSError` where that is not permitted."""
    pidfd = os.pidfd_open(process)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        copy = library.syscall(_GET_DESCRIPTOR, pidfd, number, 0)
        if copy < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return int(copy)
    finally:
        os.close(pidfd)


def _program(arch: int, calls: Mapping[str, int]) -> bytes:
    """The filter: notices of all calls, but of mappings only of those of files that are shared and may be written."""
    others = [number for name, number in calls.items() if name != "mmap"]
    count = len(others)
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 0, count + 9, arch), (_LOAD, 0, 0, 0)]
    code += [(_EQUAL, count - place + 6, 0, number) for place, number in enumerate(others)]
    code += [(_EQUAL, 0, 7, calls["mmap"])]
    code += [(_LOAD, 0, 0, 16 + 8 * 3), (_BITS, 0, 5, _MAP_SHARED), (_LOAD, 0, 0, 16 + 8 * 2), (_BITS, 0, 3, _PROT_WRITE)]
    code += [(_LOAD, 0, 0, 16 + 8 * 4), (_EQUAL, 1, 0, _NO_FILE), (_RETURN, 0, 0, _NOTIFY), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *each) for each in code)
