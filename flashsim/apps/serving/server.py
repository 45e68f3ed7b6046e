"""An NBD server on asyncio: connections share one simulated drive, and replies leave when the drive's completions are due."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
from collections import deque
from collections.abc import Callable
from selectors import SelectSelector
from time import monotonic_ns

from flashsim.apps.serving.drive import ServedDrive, ServedRequest
from flashsim.apps.serving.protocol import MAXIMUM_BLOCK, ClientRequest, Conversation, NbdCommand, reply
from flashsim.core.request import READ, WRITE
from flashsim.core.units import MIB, MICROSECONDS, NEVER, SECONDS

#: Connections beyond these are closed at once; the event loop takes no more than 1,024 files.
MAXIMUM_CONNECTIONS = 128
#: No more is taken from a connection while so much is outstanding on it.
_MOST_REQUESTS, _MOST_BYTES = 1024, 64 * MIB
#: Nor while so much is kept for all of them together, but for as little as this of each: clients that read nothing starve nobody.
_MOST_BYTES_OF_ALL, _ALWAYS = 128 * MIB, MIB

_PR_SET_TIMERSLACK = 29
#: Sleep ends this much before something is due, and this share of the wait before: systems oversleep by about as much.
_AWAKE, _AWAKE_SHARE = 100 * MICROSECONDS, 0.02


def precise_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop that wakes within some 100 us of the time it is asked to; asyncio's own counts in milliseconds."""
    with contextlib.suppress(AttributeError, OSError):  # other systems than Linux keep their slack
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    return asyncio.SelectorEventLoop(SelectSelector())


class Server:
    """Steps a drive when its requests come and are due, and sends its replies.

    `observe` is told every request that the drive took, when it has been answered; `ServedRequest.number` says in what order they came.
    """

    def __init__(self, drive: ServedDrive, observe: Callable[[ServedRequest], None]) -> None:
        self.drive = drive
        #: Connections so far, those closed at once as there were too many, and those that broke the protocol or left requests unanswered.
        self.clients = self.turned_away = self.broken = 0
        self._observe = observe
        self._open: dict[int, Connection] = {}  # by stream
        self._timer: asyncio.Handle | None = None
        self._soon = False  # whether the timer is for as soon as possible
        self._starved = False  # whether a connection waits for room that others take

    def connect(self) -> Connection:
        """A protocol for the next client, as asyncio's servers want."""
        return Connection(self)

    def enter(self, connection: Connection) -> int:
        """Take a client in; its stream, or -1 if there are too many."""
        if len(self._open) >= MAXIMUM_CONNECTIONS:
            self.turned_away += 1
            return -1
        self.clients += 1
        self._open[self.clients] = connection
        return self.clients

    def leave(self, stream: int, broken: bool) -> None:
        """A client has gone; what it asked for goes on in the drive."""
        if self._open.pop(stream, None):
            self.broken += broken
            self.feed()
            self.arrange()

    def has_room(self, connection: Connection, size: int) -> bool:
        """True if there is room for `size` more bytes of a connection; if not, the connection is fed when that may have changed."""
        if connection.bytes_in_use + size <= _ALWAYS or sum(each.bytes_in_use for each in self._open.values()) + size <= _MOST_BYTES_OF_ALL:
            return True
        self._starved = True
        return False

    def feed(self) -> None:
        if self._starved:
            self._starved = False
            for connection in list(self._open.values()):
                connection.proceed()

    def arrange(self) -> None:
        """See that the drive is stepped when it wants to be."""
        due = self.drive.next()
        if self._soon or due >= NEVER:
            return
        if self._timer:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        wait = max(due - monotonic_ns(), 0)
        awake = _AWAKE + round(_AWAKE_SHARE * wait)
        self._soon = wait <= awake
        self._timer = loop.call_soon(self._step) if self._soon else loop.call_at((due - awake) / SECONDS, self._step)

    def _step(self) -> None:
        self._timer, self._soon = None, False
        requests = self.drive.step(monotonic_ns())
        mine: dict[int, list[ServedRequest]] = {}
        for served in requests:
            mine.setdefault(served.stream, []).append(served)
        for stream, answered in mine.items():
            if stream in self._open:
                self._open[stream].answer(answered)
        sent = monotonic_ns()
        for served in requests:
            if served.stream in self._open:
                served.replied = sent
            served.data = b""  # whoever observes it wants no content
            self._observe(served)
        self.feed()
        self.arrange()

    def close(self) -> None:
        """Hang up on all clients; what they asked for stays in the drive."""
        if self._timer:
            self._timer.cancel()
        for connection in list(self._open.values()):
            connection.abandon()


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._conversation = Conversation(server.drive.export)
        self._transport: asyncio.Transport | None = None
        self._stream = -1
        self._queue: deque[ClientRequest] = deque()  # requests that the drive is not to have yet
        self._requests = self._bytes = 0  # outstanding
        self._stuffed = False  # the client does not read what it is sent

    @property
    def bytes_in_use(self) -> int:
        """Bytes that are kept for requests, and of replies that the client does not read."""
        return self._bytes + (self._transport.get_write_buffer_size() if self._stuffed and self._transport else 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._stream = self._server.enter(self)
        if self._stream < 0:
            transport.abort()
            return
        self._write(self._conversation.take_outgoing())

    def data_received(self, data: bytes) -> None:
        """Answer what can be answered at once, and let the drive have its requests."""
        self._queue.extend(self._conversation.receive(data))
        self._write(self._conversation.take_outgoing())
        self.proceed()
        self._server.arrange()

    def answer(self, answered: list[ServedRequest]) -> None:
        """Send replies to requests, and hang up with the last one that a client awaits before it leaves."""
        self._write(_replies(answered))
        self._requests -= len(answered)
        self._bytes -= sum(map(_length_carried, answered))
        self.proceed()

    def abandon(self) -> None:
        if self._transport:
            self._transport.abort()

    def pause_writing(self) -> None:
        """The client does not read its replies: take no more requests."""
        self._stuffed = True
        self.proceed()

    def resume_writing(self) -> None:
        self._stuffed = False
        self.proceed()
        self._server.feed()
        self._server.arrange()

    def connection_lost(self, problem: Exception | None) -> None:
        self._server.leave(
            self._stream, broken=self._conversation.broken or self._conversation.midway or bool(self._requests or self._queue)
        )

    def _write(self, data: bytes) -> None:
        if data and self._transport and not self._transport.is_closing():
            self._transport.write(data)

    def proceed(self) -> None:
        """Hand requests to the drive while not too much is outstanding, and read more only when none is held back."""
        if not self._transport:
            return
        received, refused = monotonic_ns(), []
        while self._queue and not self._stuffed and self._requests < _MOST_REQUESTS and self._bytes < _MOST_BYTES:
            request = self._queue[0]  # longer ones than there may be are refused
            carries = min(request.length, MAXIMUM_BLOCK) if request.command in (NbdCommand.READ, NbdCommand.WRITE) else 0
            if not self._server.has_room(self, carries):
                break
            served = self._server.drive.take(self._queue.popleft(), self._stream, received)
            if served.error:
                refused.append(served)
            else:
                self._requests += 1
                self._bytes += _length_carried(served)
        self._write(_replies(refused))
        if self._queue or self._stuffed:
            self._transport.pause_reading()
        elif self._conversation.ended and not self._requests:
            self._transport.close()  # once what was written has left
        else:
            self._transport.resume_reading()


def _replies(answered: list[ServedRequest]) -> bytes:
    return b"".join([reply(served.cookie, served.error, served.data) for served in answered])


def _length_carried(served: ServedRequest) -> int:
    return served.length if served.operation in (READ, WRITE) else 0
