"""The numbers and fixed layouts of the NBD protocol.

Everything is big-endian.  Source: doc/proto.md of https://github.com/NetworkBlockDevice/nbd, "fixed newstyle negotiation" with simple
replies.

::

    server  "NBDMAGIC" "IHAVEOPT" flags:16                                                       greeting
    client  flags:32
    client  "IHAVEOPT" option:32 length:32 data                                                  any number of options
    server  OPTION_REPLY:64 option:32 kind:32 length:32 data
    client  REQUEST:32 flags:16 command:16 cookie:64 offset:64 length:32 [data of a write]       transmission
    server  REPLY:32 error:32 cookie:64 [data of a read that succeeded]
"""

import errno
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct

from flashsim.core.request import SECTOR
from flashsim.core.units import MIB

GREETING_MAGIC = b"NBDMAGIC"
OPTION_MAGIC = b"IHAVEOPT"
OPTION_REPLY_MAGIC = 0x3E889045565A9
REQUEST_MAGIC = 0x25609513
REPLY_MAGIC = 0x67446698

GREETING = Struct(">8s8sH")
CLIENT_FLAGS = Struct(">I")
OPTION = Struct(">8sII")
OPTION_REPLY = Struct(">QIII")
EXPORT_NAME_REPLY = Struct(">QH")
INFO_EXPORT = Struct(">HQH")
INFO_BLOCK_SIZE = Struct(">HIII")
REQUEST = Struct(">IHHQQI")
REPLY = Struct(">IIQ")
#: What follows the reply to EXPORT_NAME, unless both sides agreed to leave it out.
PADDING = bytes(124)

#: Requests had better be of multiples of the first; no data is longer than the second.
PREFERRED_BLOCK, MAXIMUM_BLOCK = 4096, 32 * MIB
#: The longest option that is read: a name takes at most 4096 bytes.
MAXIMUM_OPTION = 8192


class HandshakeFlag(IntFlag):
    """What server and client say of the handshake itself."""

    FIXED_NEWSTYLE = 1
    NO_ZEROES = 2


class TransmissionFlag(IntFlag):
    """What the server says of an export."""

    HAS_FLAGS = 1
    READ_ONLY = 2
    SEND_FLUSH = 4
    SEND_FUA = 8
    ROTATIONAL = 16
    SEND_TRIM = 32
    SEND_WRITE_ZEROES = 64
    CAN_MULTI_CONN = 256


class Option(IntEnum):
    """What a client may ask for in the handshake; any other number is refused as unsupported."""

    EXPORT_NAME = 1
    ABORT = 2
    LIST = 3
    INFO = 6
    GO = 7


class Answer(IntEnum):
    """The kinds of replies to options."""

    ACK = 1
    SERVER = 2
    INFO = 3
    UNSUPPORTED = 0x80000001
    INVALID = 0x80000003
    UNKNOWN = 0x80000006
    TOO_BIG = 0x80000009


class Info(IntEnum):
    """What a client may ask of an export with INFO and GO."""

    EXPORT = 0
    NAME = 1
    DESCRIPTION = 2
    BLOCK_SIZE = 3


class NbdCommand(IntEnum):
    """What a client may ask for in transmission; any other number is refused as invalid."""

    READ = 0
    WRITE = 1
    DISCONNECT = 2
    FLUSH = 3
    TRIM = 4
    WRITE_ZEROES = 6


class CommandFlag(IntFlag):
    """How a command is to be done."""

    FUA = 1
    NO_HOLE = 2


#: The errors of a reply; their numbers are those of Linux on every system.
OK = 0
EPERM, EIO, EINVAL, ENOSPC = 1, 5, 22, 28


def error_number(problem: OSError) -> int:
    """The protocol's number for an error of the operating system."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return ENOSPC if problem.errno in full else EPERM if problem.errno == errno.EROFS else EIO


@dataclass(frozen=True)
class Export:
    """What a server has to offer: one drive.

    Parameters
    ----------
    name
        What clients may call it; they may also ask for the one without a name.
    description
        For people.
    size
        Bytes.
    read_only
        Whether writes, trims and zeroes are refused.
    rotational
        Whether it is a disk.
    trim
        Whether it takes TRIM.
    block
        Bytes; offsets and lengths are multiples of it.
    """

    name: str
    description: str
    size: int
    read_only: bool = False
    rotational: bool = False
    trim: bool = False
    block: int = SECTOR

    @property
    def flags(self) -> int:
        """Its transmission flags.  All connections share one drive, so that a flush on one covers what was acknowledged on others."""
        flags = TransmissionFlag.HAS_FLAGS | TransmissionFlag.SEND_FLUSH | TransmissionFlag.SEND_FUA | TransmissionFlag.CAN_MULTI_CONN
        if self.rotational:
            flags |= TransmissionFlag.ROTATIONAL
        if self.read_only:
            return flags | TransmissionFlag.READ_ONLY
        return flags | TransmissionFlag.SEND_WRITE_ZEROES | (TransmissionFlag.SEND_TRIM if self.trim else 0)


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client; `data` is empty but for writes."""

    command: int
    flags: int
    cookie: int
    offset: int
    length: int
    data: bytes = b""


def refusal(request: Request, export: Export) -> int:
    """The error that a request is refused with at once, OK if it is not."""
    command = request.command
    allowed = int(CommandFlag.FUA | CommandFlag.NO_HOLE) if command == NbdCommand.WRITE_ZEROES else int(CommandFlag.FUA)
    if command not in _SERVED or request.flags & ~allowed or (command == NbdCommand.TRIM and not export.trim):
        return EINVAL
    if command == NbdCommand.FLUSH:
        return EINVAL if request.offset or request.length else OK
    if command != NbdCommand.READ and export.read_only:
        return EPERM
    if request.offset % export.block or request.length % export.block or not request.length:
        return EINVAL
    if command == NbdCommand.READ and request.length > MAXIMUM_BLOCK:
        return EINVAL
    if request.offset + request.length > export.size:
        return EINVAL if command == NbdCommand.READ else ENOSPC
    return OK


_SERVED = frozenset(NbdCommand) - {NbdCommand.DISCONNECT}


def reply(cookie: int, error: int = OK, data: bytes = b"") -> bytes:
    """The reply to a request; `data` goes with a read that succeeded.

    Examples
    --------
    >>> reply(7, EINVAL).hex(" ", 4)
    '67446698 00000016 00000000 00000007'
    """
    return REPLY.pack(REPLY_MAGIC, error, cookie) + data
