"""The NBD protocol: its numbers and fixed layouts, and the server's side of one connection without any input or output.

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
import struct
from collections.abc import Generator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct

from flashsim.core.request import SECTOR
from flashsim.core.units import MIB

_GREETING_MAGIC, _OPTION_MAGIC = b"NBDMAGIC", b"IHAVEOPT"
_OPTION_REPLY_MAGIC, _REQUEST_MAGIC, _REPLY_MAGIC = 0x3E889045565A9, 0x25609513, 0x67446698

_GREETING = Struct(">8s8sH")
_CLIENT_FLAGS = Struct(">I")
_OPTION = Struct(">8sII")
_OPTION_REPLY = Struct(">QIII")
_EXPORT_NAME_REPLY = Struct(">QH")
_REQUEST = Struct(">IHHQQI")
_REPLY = Struct(">IIQ")
#: Padding of the reply to EXPORT_NAME, unless both sides agreed to leave it out.
_PADDING = bytes(124)

#: Requests had better be of multiples of the first; no data is longer than the second.
_PREFERRED_BLOCK, MAXIMUM_BLOCK = 4096, 32 * MIB
#: The longest option that is read: a name takes at most 4096 bytes.
_MAXIMUM_OPTION = 8192


class HandshakeFlag(IntFlag):
    """Flags of server and client on the handshake itself."""

    FIXED_NEWSTYLE, NO_ZEROES = 1, 2


class TransmissionFlag(IntFlag):
    """Flags of the server on an export."""

    HAS_FLAGS, READ_ONLY, SEND_FLUSH, SEND_FUA, ROTATIONAL, SEND_TRIM, SEND_WRITE_ZEROES = 1, 2, 4, 8, 16, 32, 64
    CAN_MULTI_CONN = 256


class ClientOption(IntEnum):
    """Options of a client in the handshake; any other number is refused as unsupported."""

    EXPORT_NAME, ABORT, LIST, INFO, GO = 1, 2, 3, 6, 7


class OptionReply(IntEnum):
    """The kinds of replies to options."""

    ACK, SERVER, INFO = 1, 2, 3
    UNSUPPORTED, INVALID, UNKNOWN = 0x80000001, 0x80000003, 0x80000006


class Info(IntEnum):
    """Information on an export that a client may request with INFO and GO."""

    EXPORT, NAME, DESCRIPTION, BLOCK_SIZE = 0, 1, 2, 3


class NbdCommand(IntEnum):
    """Commands of a client in transmission; any other number is refused as invalid."""

    READ, WRITE, DISCONNECT, FLUSH, TRIM, WRITE_ZEROES = 0, 1, 2, 3, 4, 6


class CommandFlag(IntFlag):
    """Flags of a command."""

    FUA, NO_HOLE = 1, 2


#: The errors of a reply; their numbers are those of Linux on every system.
OK = 0
EPERM, EIO, EINVAL, ENOSPC = 1, 5, 22, 28


def error_number(problem: OSError) -> int:
    """The protocol's number for an error of the operating system."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return ENOSPC if problem.errno in full else EPERM if problem.errno == errno.EROFS else EIO


@dataclass(frozen=True)
class Export:
    """One drive, as a server offers it."""

    #: What clients may call it; they may also ask for the one without a name.
    name: str
    #: For people.
    description: str
    #: Bytes.
    size: int
    #: Whether writes, trims and zeroes are refused.
    read_only: bool = False
    #: Whether it is a disk.
    rotational: bool = False
    trim: bool = False
    #: Bytes; offsets and lengths are multiples of it.
    block: int = SECTOR

    @property
    def flags(self) -> int:
        """Transmission flags.  All connections share one drive, so that a flush on one covers what was acknowledged on others."""
        flags = TransmissionFlag.HAS_FLAGS | TransmissionFlag.SEND_FLUSH | TransmissionFlag.SEND_FUA | TransmissionFlag.CAN_MULTI_CONN
        if self.rotational:
            flags |= TransmissionFlag.ROTATIONAL
        if self.read_only:
            return flags | TransmissionFlag.READ_ONLY
        return flags | TransmissionFlag.SEND_WRITE_ZEROES | (TransmissionFlag.SEND_TRIM if self.trim else 0)


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One request of a client; `data` is empty but for writes."""

    command: int
    flags: int
    cookie: int
    offset: int
    length: int
    data: bytes = b""


def refusal(request: ClientRequest, export: Export) -> int:
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
    return _REPLY.pack(_REPLY_MAGIC, error, cookie) + data


#: Yields how many bytes it wants next, and is sent exactly those.
Wanting = Generator[int, bytes, None]


class _BreachError(Exception):
    """The client does not speak the protocol, or asks for what there is no polite way to refuse."""


class Conversation:
    r"""Speaks with one client, however its bytes are torn.

    Examples
    --------
    >>> client = Conversation(Export("drive", "a drive", 4096))
    >>> client.take_outgoing()
    b'NBDMAGICIHAVEOPT\x00\x03'
    """

    def __init__(self, export: Export) -> None:
        #: Whether nothing that the client still sends will be read: it took its leave, or broke the protocol (`broken`).
        self.ended = self.broken = False
        self._is_negotiated = False
        self._export = export
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._requests: list[ClientRequest] = []
        self._script = self._negotiate()
        self._next_size = next(self._script)

    def receive(self, data: bytes) -> list[ClientRequest]:
        """Take bytes from the client; return the requests that they complete."""
        self._incoming += data
        while not self.ended and len(self._incoming) >= self._next_size:
            part = bytes(self._incoming[: self._next_size])
            del self._incoming[: self._next_size]
            try:
                self._next_size = self._script.send(part)
            except StopIteration:
                self.ended = True
            except _BreachError:
                self.ended = self.broken = True
        requests, self._requests = self._requests, []
        return requests

    @property
    def midway(self) -> bool:
        """True if the client has begun something that it has not finished."""
        return not self.ended and (bool(self._incoming) or not self._is_negotiated)

    def take_outgoing(self) -> bytes:
        """Bytes to send to the client in answer to its own; replies to requests are not the conversation's."""
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    def _negotiate(self) -> Wanting:
        self._outgoing += _GREETING.pack(_GREETING_MAGIC, _OPTION_MAGIC, HandshakeFlag.FIXED_NEWSTYLE | HandshakeFlag.NO_ZEROES)
        (flags,) = _CLIENT_FLAGS.unpack((yield _CLIENT_FLAGS.size))
        if flags & ~int(HandshakeFlag.FIXED_NEWSTYLE | HandshakeFlag.NO_ZEROES):
            raise _BreachError
        while not self._is_negotiated:
            magic, option, length = _OPTION.unpack((yield _OPTION.size))
            if magic != _OPTION_MAGIC or length > _MAXIMUM_OPTION:
                raise _BreachError
            data = yield length
            if option == ClientOption.EXPORT_NAME:  # the old way, whose only refusal is to hang up
                if not self._offers(data):
                    raise _BreachError
                self._is_negotiated = True
                self._outgoing += _EXPORT_NAME_REPLY.pack(self._export.size, self._export.flags)
                self._outgoing += b"" if flags & HandshakeFlag.NO_ZEROES else _PADDING
            elif option == ClientOption.ABORT:
                self._answer(option, OptionReply.ACK)
                return
            elif option == ClientOption.LIST:
                self._list(data)
            elif option in (ClientOption.INFO, ClientOption.GO):
                self._is_negotiated = self._describe(option, data) and option == ClientOption.GO
            else:
                self._answer(option, OptionReply.UNSUPPORTED)
        yield from self._transmit()

    def _transmit(self) -> Wanting:
        while True:
            magic, flags, command, cookie, offset, length = _REQUEST.unpack((yield _REQUEST.size))
            if magic != _REQUEST_MAGIC:
                raise _BreachError
            if command == NbdCommand.DISCONNECT:
                return
            data = b""
            if command == NbdCommand.WRITE:
                if length > MAXIMUM_BLOCK:
                    raise _BreachError  # rather than to take in what will be refused
                data = yield length
            self._requests.append(ClientRequest(command, flags, cookie, offset, length, data))

    def _offers(self, name: bytes) -> bool:
        return name in (b"", self._export.name.encode())

    def _answer(self, option: int, kind: int, data: bytes = b"") -> None:
        self._outgoing += _OPTION_REPLY.pack(_OPTION_REPLY_MAGIC, option, kind, len(data)) + data

    def _refuse(self, option: int, kind: int, reason: bytes) -> bool:
        self._answer(option, kind, reason)
        return False

    def _list(self, data: bytes) -> None:
        if data:
            self._answer(ClientOption.LIST, OptionReply.INVALID, b"LIST takes no data")
            return
        name = self._export.name.encode()
        self._answer(ClientOption.LIST, OptionReply.SERVER, len(name).to_bytes(4, "big") + name + self._export.description.encode())
        self._answer(ClientOption.LIST, OptionReply.ACK)

    def _describe(self, option: int, data: bytes) -> bool:
        try:
            (length,) = struct.unpack_from(">I", data)
            (count,) = struct.unpack_from(">H", data, 4 + length)
            numbers = struct.unpack_from(f">{count}H", data, 6 + length)
        except struct.error:
            return self._refuse(option, OptionReply.INVALID, b"the option is too short for what it announces")
        if len(data) != 6 + length + 2 * count:
            return self._refuse(option, OptionReply.INVALID, b"the option is longer than what it announces")
        if not self._offers(data[4 : 4 + length]):
            return self._refuse(option, OptionReply.UNKNOWN, b"no such export; there is " + self._export.name.encode())
        export = self._export
        infos = {
            Info.NAME: export.name.encode(),
            Info.DESCRIPTION: export.description.encode(),
            Info.BLOCK_SIZE: struct.pack(">III", export.block, max(export.block, _PREFERRED_BLOCK), MAXIMUM_BLOCK),
        }
        self._answer(option, OptionReply.INFO, struct.pack(">HQH", Info.EXPORT, export.size, export.flags))
        for info, content in infos.items():
            if info in numbers:
                self._answer(option, OptionReply.INFO, info.to_bytes(2, "big") + content)
        self._answer(option, OptionReply.ACK)
        return True
