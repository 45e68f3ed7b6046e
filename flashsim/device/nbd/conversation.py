"""The server's side of one NBD connection without any input or output: bytes go in, requests and bytes come out."""

import struct
from collections.abc import Generator

from flashsim.device.nbd import messages

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
    >>> client = Conversation(messages.Export("drive", "a drive", 4096))
    >>> client.take_outgoing()
    b'NBDMAGICIHAVEOPT\x00\x03'
    """

    def __init__(self, export: messages.Export) -> None:
        self.ended = self.broken = False
        self._chosen = False
        self._export = export
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._requests: list[messages.Request] = []
        self._script = self._speak()
        self._wanted = next(self._script)

    def receive(self, data: bytes) -> list[messages.Request]:
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
        self._outgoing += messages.GREETING.pack(
            messages.GREETING_MAGIC, messages.OPTION_MAGIC, messages.HandshakeFlag.FIXED_NEWSTYLE | messages.HandshakeFlag.NO_ZEROES
        )
        (flags,) = messages.CLIENT_FLAGS.unpack((yield messages.CLIENT_FLAGS.size))
        if flags & ~int(messages.HandshakeFlag.FIXED_NEWSTYLE | messages.HandshakeFlag.NO_ZEROES):
            raise _BreachError
        while not self._chosen:
            magic, option, length = messages.OPTION.unpack((yield messages.OPTION.size))
            if magic != messages.OPTION_MAGIC or length > messages.MAXIMUM_OPTION:
                raise _BreachError
            data = yield length
            if option == messages.Option.EXPORT_NAME:  # the old way, whose only refusal is to hang up
                if not self._offers(data):
                    raise _BreachError
                self._chosen = True
                self._outgoing += messages.EXPORT_NAME_REPLY.pack(self._export.size, self._export.flags)
                self._outgoing += b"" if flags & messages.HandshakeFlag.NO_ZEROES else messages.PADDING
            elif option == messages.Option.ABORT:
                self._answer(option, messages.Answer.ACK)
                return
            elif option == messages.Option.LIST:
                self._list(data)
            elif option in (messages.Option.INFO, messages.Option.GO):
                self._chosen = self._describe(option, data) and option == messages.Option.GO
            else:
                self._answer(option, messages.Answer.UNSUPPORTED)

    def _transmit(self) -> Wanting:
        while True:
            magic, flags, command, cookie, offset, length = messages.REQUEST.unpack((yield messages.REQUEST.size))
            if magic != messages.REQUEST_MAGIC:
                raise _BreachError
            if command == messages.NbdCommand.DISCONNECT:
                return
            data = b""
            if command == messages.NbdCommand.WRITE:
                if length > messages.MAXIMUM_BLOCK:
                    raise _BreachError  # rather than to take in what will be refused
                data = yield length
            self._requests.append(messages.Request(command, flags, cookie, offset, length, data))

    def _offers(self, name: bytes) -> bool:
        return name in (b"", self._export.name.encode())

    def _answer(self, option: int, kind: int, data: bytes = b"") -> None:
        self._outgoing += messages.OPTION_REPLY.pack(messages.OPTION_REPLY_MAGIC, option, kind, len(data)) + data

    def _list(self, data: bytes) -> None:
        if data:
            self._answer(messages.Option.LIST, messages.Answer.INVALID, b"LIST takes no data")
            return
        name = self._export.name.encode()
        self._answer(messages.Option.LIST, messages.Answer.SERVER, len(name).to_bytes(4, "big") + name + self._export.description.encode())
        self._answer(messages.Option.LIST, messages.Answer.ACK)

    def _describe(self, option: int, data: bytes) -> bool:
        try:
            (length,) = struct.unpack_from(">I", data)
            (count,) = struct.unpack_from(">H", data, 4 + length)
            wanted = struct.unpack_from(f">{count}H", data, 6 + length)
        except struct.error:
            self._answer(option, messages.Answer.INVALID, b"the option is too short for what it announces")
            return False
        if len(data) != 6 + length + 2 * count:
            self._answer(option, messages.Answer.INVALID, b"the option is longer than what it announces")
            return False
        if not self._offers(data[4 : 4 + length]):
            self._answer(option, messages.Answer.UNKNOWN, b"no such export; there is " + self._export.name.encode())
            return False
        export = self._export
        self._answer(option, messages.Answer.INFO, messages.INFO_EXPORT.pack(messages.Info.EXPORT, export.size, export.flags))
        for info, text in ((messages.Info.NAME, export.name), (messages.Info.DESCRIPTION, export.description)):
            if info in wanted:
                self._answer(option, messages.Answer.INFO, info.to_bytes(2, "big") + text.encode())
        if messages.Info.BLOCK_SIZE in wanted:
            self._answer(
                option,
                messages.Answer.INFO,
                messages.INFO_BLOCK_SIZE.pack(
                    messages.Info.BLOCK_SIZE, export.block, max(export.block, messages.PREFERRED_BLOCK), messages.MAXIMUM_BLOCK
                ),
            )
        self._answer(option, messages.Answer.ACK)
        return True
