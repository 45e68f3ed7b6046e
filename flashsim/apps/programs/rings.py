"""Requests of io_uring, read from a program's submission ring before the kernel takes them."""

import ctypes
import mmap
import os
import struct
from dataclasses import dataclass, field

from flashsim.apps.programs.notices import descriptor_of_process

#: Places of a ring and of its entries in the memory of the ring's descriptor.
_RING, _ENTRIES = 0, 0x10000000
#: Flags of a ring: entries are polled for by the kernel, memory is the program's, entries of 128 bytes, no array of entries.
_POLLED, _OWN_MEMORY, _WIDE, _NO_ARRAY = 1 << 1, 1 << 14, 1 << 10, 1 << 16
#: Parameters: entries, flags, and behind other fields the places of head, tail, mask, entries, flags, dropped and array.
_PARAMETERS = struct.Struct("=IIIIIII3I7II Q")
#: An entry: operation, flags, file, offset, address, length.
_ENTRY, _FIXED_FILE, _HERE = struct.Struct("=BBHiQQI"), 1, (1 << 64) - 1
#: Operations that read or write, of one buffer and of several, those that sync, and those that touch no file.
_PLAIN, _SEVERAL = {4: "PREAD", 22: "PREAD", 5: "PWRITE", 23: "PWRITE"}, {1: "PREADV", 2: "PWRITEV"}
_SYNC, _ELSEWHERE = 3, {0, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 26, 27, 29, 31, 32, 34, 38, 39, 40, 45, 47, 48}
#: What else changes files, by operation.
_OTHERS = {8: "sync_file_range", 17: "fallocate", 18: "openat", 19: "close", 28: "openat2", 30: "splice", 35: "renameat", 36: "unlinkat"}
_REGISTER_FILES, _UPDATE_FILES = (2,), (6, 13, 14)
#: Vectors of a request at most, as the kernel has it.
_VECTORS = 1024


class UnseenError(Exception):
    """Requests of a ring cannot be read."""


@dataclass(frozen=True)
class RingRequest:
    """A request of a ring: an operation as libaio names it, a descriptor's number and path, and memory of the program (address, bytes)."""

    operation: str
    descriptor: int
    path: str
    #: Byte of the file; None: where the last one ended.
    offset: int | None = None
    memory: tuple[tuple[int, int], ...] = ()


@dataclass
class SubmissionRing:
    """A ring that a thread of a process makes; the kernel fills the `parameters` (an address) before that thread maps the ring."""

    process: int
    thread: int
    parameters: int
    descriptor: int = -1
    #: Descriptors of registered files when they were registered, and their paths.
    files: list[tuple[int, str]] = field(default_factory=list)

    def open(self, number: int) -> None:
        """Map the ring of this descriptor.  Raises UnseenError: its entries cannot be read."""
        head = _PARAMETERS.unpack(read_memory(self.process, self.parameters, _PARAMETERS.size))
        entries, flags, places = head[0], head[2], head[10:17]
        if flags & _OWN_MEMORY or flags & _POLLED:
            raise UnseenError("requests of io_uring that the kernel polls for, or in the program's own memory")
        copy = descriptor_of_process(self.process, number)
        try:
            width = 128 if flags & _WIDE else 64
            size = max(places[:6]) + 4 if flags & _NO_ARRAY else places[6] + 4 * entries
            self._ring = mmap.mmap(copy, size, mmap.MAP_SHARED, mmap.PROT_READ, offset=_RING)
            self._entries = mmap.mmap(copy, entries * width, mmap.MAP_SHARED, mmap.PROT_READ, offset=_ENTRIES)
        finally:
            os.close(copy)
        self.descriptor, self._width, self._mask, self._places = number, width, entries - 1, places
        self._array = None if flags & _NO_ARRAY else places[6]

    def requests(self, count: int) -> tuple[list[RingRequest], set[str]]:
        """The next requests that are submitted, and names of operations that are not read."""
        requests, missed = list[RingRequest](), set[str]()
        head, tail = (self._number(self._ring, place) for place in self._places[:2])
        for place in range(head, head + min(count, (tail - head) & 0xFFFFFFFF)):
            index = place & self._mask
            index = index if self._array is None else self._number(self._ring, self._array + 4 * index)
            operation, flags, _, number, offset, address, length = _ENTRY.unpack_from(self._entries, index * self._width)
            if operation in _ELSEWHERE:
                continue
            if operation not in (*_PLAIN, *_SEVERAL, _SYNC):
                missed.add(f"io_uring: {_OTHERS.get(operation, f'operation {operation}')}")
                continue
            if flags & _FIXED_FILE:
                number, path = self.files[number] if number < len(self.files) else (number, "")
            else:
                path = path_of_descriptor(self.process, number)
            if not path:
                missed.add("io_uring: requests of files that are not known")
                continue
            if operation == _SYNC:
                requests.append(RingRequest("FSYNC", number, path))
                continue
            memory: tuple[tuple[int, int], ...] = ((address, length),)
            if operation in _SEVERAL:
                vectors = read_memory(self.process, address, 16 * min(length, _VECTORS))
                memory = tuple((first, count) for first, count in struct.iter_unpack("=QQ", vectors))
            name = _PLAIN.get(operation) or _SEVERAL[operation]
            requests.append(RingRequest(name, number, path, None if offset == _HERE else offset, memory))
        return requests, missed

    def register(self, operation: int, address: int, count: int) -> str:
        """Files are registered; what is missed."""
        if operation in _REGISTER_FILES:
            numbers = struct.unpack(f"={count}i", read_memory(self.process, address, 4 * count))
            self.files = [(number, "" if number < 0 else path_of_descriptor(self.process, number)) for number in numbers]
        return "io_uring: files that are registered later" if operation in _UPDATE_FILES else ""

    @staticmethod
    def _number(memory: mmap.mmap, place: int) -> int:
        return int(ctypes.c_uint32.from_buffer_copy(memory[place : place + 4]).value)


def read_memory(process: int, address: int, length: int) -> bytes:
    """Bytes of a process's memory; an `OSError` where there is none."""
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(length)


def path_of_descriptor(process: int, number: int) -> str:
    """The path of what a descriptor of a process stands for; empty if there is none."""
    try:
        return os.readlink(f"/proc/{process}/fd/{number}").removesuffix(" (deleted)")
    except OSError:
        return ""
