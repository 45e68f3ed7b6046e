"""The server's side of one NBD connection without any input or output: bytes go in, requests and bytes come out."""

import struct
from collections.abc import Generator

from flashsim.device.nbd.messages import (
    CLIENT_FLAGS,
    EXPORT_NAME_REPLY,
    GREETING,
    GREETING_MAGIC,
    INFO_BLOCK_SIZE,
    INFO_EXPORT,
    MAXIMUM_BLOCK,
    MAXIMUM_OPTION,
    OPTION,
    OPTION_MAGIC,
    OPTION_REPLY,
    OPTION_REPLY_MAGIC,
    PADDING,
    PREFERRED_BLOCK,
    REQUEST,
    REQUEST_MAGIC,
    Answer,
    Export,
    HandshakeFlag,
    Info,
    NbdCommand,
    Option,
    Request,
)

#: Yields how many bytes it wants next, and is sent exactly those.
Wanting = Generator[int, bytes, None]


class _BreachError(Exception):
    """The client does not speak the protocol, or asks for what there is no polite way to refuse."""


class Conversation:
    r"""Speaks with one client, however its bytes are torn.

    Parameters
    ----------
    export
        The drive that is offered.

    Attributes
    ----------
    ended
        Nothing that the client still sends will be read: it took its leave, or broke the protocol.
    broken
        It broke the protocol.

    Examples
    --------
    >>> client = Conversation(Export("drive", "a drive", 4096))
    >>> client.take_outgoing()
    b'NBDMAGICIHAVEOPT\x00\x03'
    """

    def __init__(self, export: Export) -> None:
        self.ended = self.broken = False
        self._chosen = False
        self._export = export
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._requests: list[Request] = []
        self._script = self._speak()
        self._wanted = next(self._script)

    def receive(self, data: bytes) -> list[Request]:
        """Take bytes from the client; return the requests that they complete."""
        self._incoming += data
        while not self.ended and len(self._incoming) >= self._wanted:
            part = bytes(self._incoming[: self._wanted])
            del self._incoming[: self._wanted]
            try:
                self._wanted = self._script.send(part)
            except StopIteration:
                self.ended = True
            except _BreachError:
                self.ended = self.broken = True
        requests, self._requests = self._requests, []
        return requests

    @property
    def midway(self) -> bool:
        """Whether the client has begun something that it has not finished."""
        return not self.ended and (bool(self._incoming) or not self._chosen)

    def take_outgoing(self) -> bytes:
        """What is to be sent to the client in answer to what it has sent; replies to requests are not the conversation's."""
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    def _speak(self) -> Wanting:
        yield from self._negotiate()
        if self._chosen:
            yield from self._transmit()

    def _negotiate(self) -> Wanting:
        self._outgoing += GREETING.pack(GREETING_MAGIC, OPTION_MAGIC, HandshakeFlag.FIXED_NEWSTYLE | HandshakeFlag.NO_ZEROES)
        (flags,) = CLIENT_FLAGS.unpack((yield CLIENT_FLAGS.size))
        if flags & ~int(HandshakeFlag.FIXED_NEWSTYLE | HandshakeFlag.NO_ZEROES):
            raise _BreachError
        while not self._chosen:
            magic, option, length = OPTION.unpack((yield OPTION.size))
            if magic != OPTION_MAGIC or length > MAXIMUM_OPTION:
                raise _BreachError
            data = yield length
            if option == Option.EXPORT_NAME:  # the old way, whose only refusal is to hang up
                if not self._offers(data):
                    raise _BreachError
                self._chosen = True
                self._outgoing += EXPORT_NAME_REPLY.pack(self._export.size, self._export.flags)
                self._outgoing += b"" if flags & HandshakeFlag.NO_ZEROES else PADDING
            elif option == Option.ABORT:
                self._answer(option, Answer.ACK)
                return
            elif option == Option.LIST:
                self._list(data)
            elif option in (Option.INFO, Option.GO):
                self._chosen = self._describe(option, data) and option == Option.GO
            else:
                self._answer(option, Answer.UNSUPPORTED)

    def _transmit(self) -> Wanting:
        while True:
            magic, flags, command, cookie, offset, length = REQUEST.unpack((yield REQUEST.size))
            if magic != REQUEST_MAGIC:
                raise _BreachError
            if command == NbdCommand.DISCONNECT:
                return
            data = b""
            if command == NbdCommand.WRITE:
                if length > MAXIMUM_BLOCK:
                    raise _BreachError  # rather than to take in what will be refused
                data = yield length
            self._requests.append(Request(command, flags, cookie, offset, length, data))

    def _offers(self, name: bytes) -> bool:
        return name in (b"", self._export.name.encode())

    def _answer(self, option: int, kind: int, data: bytes = b"") -> None:
        self._outgoing += OPTION_REPLY.pack(OPTION_REPLY_MAGIC, option, kind, len(data)) + data

    def _list(self, data: bytes) -> None:
        if data:
            self._answer(Option.LIST, Answer.INVALID, b"LIST takes no data")
            return
        name = self._export.name.encode()
        self._answer(Option.LIST, Answer.SERVER, len(name).to_bytes(4, "big") + name + self._export.description.encode())
        self._answer(Option.LIST, Answer.ACK)

    def _describe(self, option: int, data: bytes) -> bool:
        try:
            (length,) = struct.unpack_from(">I", data)
            (count,) = struct.unpack_from(">H", data, 4 + length)
            wanted = struct.unpack_from(f">{count}H", data, 6 + length)
        except struct.error:
            self._answer(option, Answer.INVALID, b"the option is too short for what it announces")
            return False
        if len(data) != 6 + length + 2 * count:
            self._answer(option, Answer.INVALID, b"the option is longer than what it announces")
            return False
        if not self._offers(data[4 : 4 + length]):
            self._answer(option, Answer.UNKNOWN, b"no such export; there is " + self._export.name.encode())
            return False
        export = self._export
        self._answer(option, Answer.INFO, INFO_EXPORT.pack(Info.EXPORT, export.size, export.flags))
        for info, text in ((Info.NAME, export.name), (Info.DESCRIPTION, export.description)):
            if info in wanted:
                self._answer(option, Answer.INFO, info.to_bytes(2, "big") + text.encode())
        if Info.BLOCK_SIZE in wanted:
            self._answer(
                option, Answer.INFO, INFO_BLOCK_SIZE.pack(Info.BLOCK_SIZE, export.block, max(export.block, PREFERRED_BLOCK), MAXIMUM_BLOCK)
            )
        self._answer(option, Answer.ACK)
        return True
