"""The NBD protocol as a pure parser: what it answers, torn input, and hostile input."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.apps.serving.protocol import ClientRequest, Conversation, Export, refusal
from tests.apps.serving import nbd_client as nbd
from tests.apps.serving.nbd_client import go, hello, option, option_replies, request
from tests.cases import with_each
from tests.tiers import examples

EXPORT = Export("drive", "a drive of the tests", 1 << 20, trim=True)
ACK, SERVER, INFO_REPLY, UNSUPPORTED, INVALID, UNKNOWN = 1, 2, 3, (1 << 31) + 1, (1 << 31) + 3, (1 << 31) + 6


def conversation(export: Export = EXPORT, flags: int = 3) -> Conversation:
    """One that has been greeted."""
    started = Conversation(export)
    assert started.take_outgoing() == b"NBDMAGICIHAVEOPT\x00\x03"
    assert started.receive(hello(flags)) == []
    return started


def answers(message: bytes, export: Export = EXPORT) -> list[tuple[int, int, bytes]]:
    spoken = conversation(export)
    spoken.receive(message)
    return option_replies(spoken.take_outgoing())


@pytest.mark.parametrize("name", ["", "drive"])
def test_go_tells_what_was_asked_for_and_begins(name: str) -> None:
    spoken = conversation()
    spoken.receive(go(name, (1, 2, 3, 77)))
    flags = 1 | 4 | 8 | 32 | 64 | 256  # has flags; flush, FUA, trim, zeroes, several connections
    told = [
        struct.pack(">HQH", 0, 1 << 20, flags),
        b"\x00\x01drive",
        b"\x00\x02a drive of the tests",
        struct.pack(">HIII", 3, 512, 4096, 32 << 20),
    ]
    assert option_replies(spoken.take_outgoing()) == [(nbd.GO, INFO_REPLY, data) for data in told] + [(nbd.GO, ACK, b"")]
    assert spoken.receive(request(nbd.READ, 512, 1024, cookie=9)) == [ClientRequest(0, 0, 9, 512, 1024)]


def test_info_tells_and_does_not_begin() -> None:
    spoken = conversation()
    spoken.receive(go("drive", number=nbd.INFO) + option(nbd.LIST))
    kinds = [(number, kind) for number, kind, _ in option_replies(spoken.take_outgoing())]
    assert kinds == [(nbd.INFO, INFO_REPLY), (nbd.INFO, ACK), (nbd.LIST, SERVER), (nbd.LIST, ACK)]
    assert spoken.midway and not spoken.ended


def test_the_export_is_listed_with_its_description() -> None:
    assert answers(option(nbd.LIST)) == [
        (nbd.LIST, SERVER, struct.pack(">I", 5) + b"drive" + b"a drive of the tests"),
        (nbd.LIST, ACK, b""),
    ]
    assert [kind for _, kind, _ in answers(option(nbd.LIST, b"all"))] == [INVALID]


def test_unknown_exports_are_refused() -> None:
    ((_, kind, said),) = answers(go("drives"))
    assert kind == UNKNOWN and b"drive" in said
    spoken = conversation()
    spoken.receive(option(nbd.EXPORT_NAME, b"drives"))
    assert spoken.ended and spoken.broken and spoken.take_outgoing() == b""


@with_each("number", [nbd.STARTTLS, nbd.STRUCTURED_REPLY, nbd.SET_META_CONTEXT, 11, 4242])
def test_what_is_not_offered_is_refused_and_the_client_may_go_on(number: int) -> None:
    spoken = conversation()
    spoken.receive(option(number, b"data") + go())
    assert [kind for _, kind, _ in option_replies(spoken.take_outgoing())] == [UNSUPPORTED, INFO_REPLY, ACK]


@with_each("data", [b"", b"\0\0\0\xff", struct.pack(">IH", 0, 3), struct.pack(">IHHH", 0, 1, 0, 0), b"\xff" * 40])
def test_options_that_do_not_fit_their_announcement_are_invalid(data: bytes) -> None:
    assert [kind for _, kind, _ in answers(option(nbd.GO, data))] == [INVALID]


def test_the_old_way_pads_unless_agreed_otherwise() -> None:
    for flags, padding in ((1, 124), (3, 0)):
        spoken = conversation(flags=flags)
        spoken.receive(option(nbd.EXPORT_NAME, b"drive"))
        assert spoken.take_outgoing() == struct.pack(">QH", EXPORT.size, EXPORT.flags) + bytes(padding)


def test_abort_is_acknowledged_and_ends_it() -> None:
    spoken = conversation()
    spoken.receive(option(nbd.ABORT) + option(nbd.LIST))
    assert option_replies(spoken.take_outgoing()) == [(nbd.ABORT, ACK, b"")]
    assert spoken.ended and not spoken.broken and not spoken.midway


def test_disconnect_ends_it_and_nothing_behind_is_read() -> None:
    spoken = conversation()
    requests = spoken.receive(go() + request(nbd.FLUSH, cookie=1) + request(nbd.DISCONNECT) + request(nbd.FLUSH, cookie=2))
    assert [found.cookie for found in requests] == [1]
    assert spoken.ended and not spoken.broken


@with_each(
    "breach",
    [
        hello(4),
        hello() + b"IHAVEOPS" + bytes(8),
        hello() + b"IHAVEOPT" + struct.pack(">II", nbd.GO, 1 << 31),
        hello() + go() + b"\0" * 28,
        hello() + go() + request(nbd.WRITE, 0, (32 << 20) + 512),
    ],
)
def test_breaches_end_it(breach: bytes) -> None:
    spoken = Conversation(EXPORT)
    spoken.receive(breach)
    assert spoken.ended and spoken.broken
    assert spoken.receive(b"more") == []


def test_read_only_and_rotational_are_told() -> None:
    assert Export("d", "", 512, read_only=True, trim=True).flags == 1 | 2 | 4 | 8 | 256
    assert Export("d", "", 512, rotational=True).flags == 1 | 4 | 8 | 16 | 64 | 256


SIZE = EXPORT.size
READ_ONLY = Export("drive", "", SIZE, read_only=True, trim=True)


@with_each(
    "asked, error",
    [
        (ClientRequest(nbd.READ, 0, 0, 0, 512), 0),
        (ClientRequest(nbd.READ, 0, 0, SIZE - 512, 512), 0),
        (ClientRequest(nbd.READ, 0, 0, SIZE, 512), nbd.INVALID),
        (ClientRequest(nbd.READ, 0, 0, (1 << 64) - 512, 1024), nbd.INVALID),
        (ClientRequest(nbd.READ, 0, 0, 0, 0), nbd.INVALID),
        (ClientRequest(nbd.READ, 0, 0, 1, 512), nbd.INVALID),
        (ClientRequest(nbd.READ, 0, 0, 0, 511), nbd.INVALID),
        (ClientRequest(nbd.READ, nbd.NO_HOLE, 0, 0, 512), nbd.INVALID),
        (ClientRequest(nbd.READ, nbd.FUA, 0, 0, 512), 0),
        (ClientRequest(nbd.WRITE, nbd.FUA, 0, 0, 512), 0),
        (ClientRequest(nbd.WRITE, 0, 0, SIZE - 512, 1024), nbd.NO_SPACE),
        (ClientRequest(nbd.TRIM, 0, 0, 0, SIZE), 0),
        (ClientRequest(nbd.TRIM, 0, 0, 512, SIZE), nbd.NO_SPACE),
        (ClientRequest(nbd.WRITE_ZEROES, nbd.NO_HOLE, 0, 0, SIZE), 0),
        (ClientRequest(nbd.WRITE_ZEROES, 16, 0, 0, SIZE), nbd.INVALID),
        (ClientRequest(nbd.FLUSH, 0, 0, 0, 0), 0),
        (ClientRequest(nbd.FLUSH, 0, 0, 0, 512), nbd.INVALID),
        (ClientRequest(nbd.CACHE, 0, 0, 0, 512), nbd.INVALID),
        (ClientRequest(999, 0, 0, 0, 512), nbd.INVALID),
    ],
)
def test_requests_that_are_refused(asked: ClientRequest, error: int) -> None:
    assert refusal(asked, EXPORT) == error


def test_a_read_only_export_refuses_what_changes_it() -> None:
    for command in (nbd.WRITE, nbd.TRIM, nbd.WRITE_ZEROES):
        assert refusal(ClientRequest(command, 0, 0, 0, 512), READ_ONLY) == nbd.PERMISSION
    assert refusal(ClientRequest(nbd.FLUSH, 0, 0, 0, 0), READ_ONLY) == refusal(ClientRequest(nbd.READ, 0, 0, 0, 512), READ_ONLY) == 0
    assert refusal(ClientRequest(nbd.TRIM, 0, 0, 0, 512), Export("disk", "", SIZE)) == nbd.INVALID
    assert refusal(ClientRequest(nbd.READ, 0, 0, 0, 64 << 20), Export("disk", "", 1 << 30)) == nbd.INVALID


def test_disks_of_larger_sectors_take_whole_ones() -> None:
    disk = Export("disk", "", 1 << 20, rotational=True, block=8192)
    assert struct.pack(">HIII", 3, 8192, 8192, 32 << 20) in [data for _, _, data in answers(go(infos=(3,)), disk)]
    assert refusal(ClientRequest(nbd.READ, 0, 0, 8192, 8192), disk) == 0
    assert (
        refusal(ClientRequest(nbd.READ, 0, 0, 8192, 4096), disk) == refusal(ClientRequest(nbd.WRITE, 0, 0, 4096, 8192), disk) == nbd.INVALID
    )


options = st.one_of(
    st.builds(option, st.integers(0, 12).filter(lambda number: number not in (nbd.EXPORT_NAME, nbd.ABORT)), st.binary(max_size=40)),
    st.builds(go, st.sampled_from(["", "drive", "other"]), st.lists(st.integers(0, 4), max_size=3).map(tuple), st.just(nbd.INFO)),
)
commands = st.one_of(
    st.builds(
        request, st.sampled_from([nbd.READ, nbd.FLUSH, nbd.TRIM, nbd.WRITE_ZEROES, 99]), st.integers(0, 1 << 63), st.integers(0, 9999)
    ),
    st.builds(lambda data, cookie: request(nbd.WRITE, 0, data=data, cookie=cookie), st.binary(max_size=600), st.integers(0, (1 << 64) - 1)),
)
streams = st.tuples(st.lists(options, max_size=4), st.lists(commands, max_size=6)).map(
    lambda parts: hello() + b"".join(parts[0]) + go() + b"".join(parts[1])
)


def fed(pieces: list[bytes]) -> tuple[bytes, list[ClientRequest], bool]:
    """What a conversation says and finds in pieces of input, and whether it is over."""
    spoken, requests = Conversation(EXPORT), []
    for piece in pieces:
        requests += spoken.receive(piece)
    return spoken.take_outgoing(), requests, spoken.ended


@settings(max_examples=examples(50))
@given(streams, st.data())
def test_torn_input_says_the_same(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = fed([stream])
    assert fed(pieces) == whole
    assert fed([bytes([value]) for value in stream]) == whole


@given(streams)
def test_every_request_of_a_valid_stream_is_found(stream: bytes) -> None:
    _, requests, ended = fed([stream])
    assert not ended
    sent = b"".join(
        nbd.request(found.command, found.offset, found.length, cookie=found.cookie, flags=found.flags, data=found.data)
        for found in requests
    )
    assert stream.endswith(sent)


@given(streams, st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=5), st.binary(max_size=64))
def test_hostile_input_raises_nothing(stream: bytes, changes: list[tuple[int, int]], rest: bytes) -> None:
    mutated = bytearray(stream)
    for place, value in changes:
        mutated[place % len(mutated)] = value
    _, requests, _ = fed([bytes(mutated) + rest])
    for found in requests:
        assert refusal(found, EXPORT) in (0, nbd.PERMISSION, nbd.INVALID, nbd.NO_SPACE)


@given(st.binary(max_size=300))
def test_noise_raises_nothing(noise: bytes) -> None:
    fed([noise])
    fed([hello(), noise])
    fed([hello() + go(), noise])
