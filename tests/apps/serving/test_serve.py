"""A simulated drive served over NBD: other programs as judges, clients that misbehave, and how serving ends."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from flashsim.apps.serving.command import device_serve
from flashsim.apps.serving.server import MAXIMUM_CONNECTIONS
from flashsim.apps.serving.session import at_path
from flashsim.command_line import app
from flashsim.core.rng import generator
from tests.apps.serving import nbd_client as nbd
from tests.commands import Run
from tests.flashsim.experiments.runs.test_interrupts import ROOT
from tests.processes import without_progress
from tests.yardstick import seconds
from traces.file.schema import open_trace

#: 32 MiB in 256 dies, so that four reads at random places hardly ever meet in one.
SLOW = {
    "capacity": "32MiB", "page_size": "4KiB", "pages_per_block": 8, "blocks_per_plane": 8, "planes_per_die": 1, "dies_per_package": 4,
    "packages_per_channel": 8, "channels": 8, "read": "99.8ms", "program": "1ms", "erase": "2ms", "channel_rate": "400MB/s",
    "link_read_rate": "400MB/s", "link_write_rate": "400MB/s", "read_latency": "100ms", "write_latency": "1.1ms", "queue_depth": 32,
    "gc_reserve": 2, "ftl": "page", "gc": "greedy",
}  # fmt: skip


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed")


def preset(folder: Path, **changes: Any) -> Path:
    """A preset of the tests: reads of a page take 100 ms."""
    lines = [f'{name} = {{ value = {json.dumps(value)}, source = "test" }}' for name, value in (SLOW | changes).items()]
    path = folder / "slow.toml"
    path.write_text("\n".join(['name = "slow"', 'kind = "ssd"', 'title = "A drive of the tests"', "[parameters]", *lines, ""]))
    return path


def serve(*words: str | Path, run: str) -> Result:
    """Serve while a shell command runs."""
    return CliRunner().invoke(app, ["device", "serve", *map(str, words), "--run", run], prog_name="flashsim")


def served(*words: str | Path, run: str) -> dict[str, Any]:
    """What serving had to tell, after it went well."""
    result = serve(*words, "--json", "served.json", "--force", run=run)
    assert result.exit_code == 0, result.output
    told: dict[str, Any] = json.loads(Path("served.json").read_text())
    return told


@needs("fio")
def test_100_ms_at_depth_4_are_40_requests_a_second(here: Path) -> None:
    """A drive whose reads take 100 ms serves four at a time, each in its time: clients on a busy machine ask for fewer."""
    command = 'fio --name=reads --ioengine=nbd --uri="$uri" --rw=randread --bs=4k --iodepth=4 --time_based --runtime=3'
    told = served(preset(here), run=f"{command} --output-format=json --output=fio.json")
    job = json.loads((here / "fio.json").read_text())["jobs"][0]
    drive = told["drive"]
    assert drive["outstanding"]["max"] == 4 and drive["operations"]["read"]["latency_mean"] == pytest.approx(100_000_000, rel=0.05)
    assert 0 < job["read"]["iops"] <= 42
    assert drive["operations"]["read"]["requests"] == job["read"]["total_ios"]
    assert job["read"]["lat_ns"]["mean"] >= drive["operations"]["read"]["latency_mean"] > 100_000_000


@needs("nbdinfo")
def test_nbdinfo_agrees(here: Path) -> None:
    served(preset(here), run='nbdinfo --json "$uri" > info.json; nbdinfo --list --json "$uri" > list.json')
    (export,) = json.loads((here / "info.json").read_text())["exports"]
    assert (export["export-size"], export["description"]) == (32 << 20, "A drive of the tests")
    assert {name for name, value in export.items() if value is True} == {"can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero"}
    assert (export["block_size_minimum"], export["block_size_maximum"]) == (512, 32 << 20)
    assert [found["export-name"] for found in json.loads((here / "list.json").read_text())["exports"]] == ["slow"]


@needs("nbdinfo")
def test_other_names_are_refused(here: Path) -> None:
    result = serve(preset(here), "--socket", "s.sock", run='nbdinfo "nbd+unix:///other?socket=s.sock" 2> said.txt')
    assert result.exit_code == 1  # nbdinfo's
    assert "for export: other" in (here / "said.txt").read_text()
    assert not (here / "s.sock").exists()


@needs("nbdcopy")
@pytest.mark.parametrize("content", [[], ["--content", "drive.img"]], ids=["memory", "file"])
def test_content_copied_in_and_out_is_the_same(content: list[str], here: Path) -> None:
    random = generator(1, "content").integers(0, 256, 8 << 20, np.uint8).tobytes()
    data = random[: 3 << 20] + bytes(4 << 20) + random[3 << 20 :]
    (here / "in.bin").write_bytes(data)
    told = served(preset(here), "--time-scale", "0", *content, run='nbdcopy in.bin "$uri" && nbdcopy "$uri" out.bin')
    out = (here / "out.bin").read_bytes()
    assert out[: len(data)] == data and out[len(data) :] == bytes((32 << 20) - len(data))
    assert told["drive"]["operations"]["write"]["bytes"] >= len(random)
    assert told["session"]["refused"] == told["session"]["broken"] == told["unanswered"] == told["late"] == 0
    if content:
        served(preset(here), "--time-scale", "0", "--read-only", "--empty", *content, run='nbdcopy "$uri" again.bin')
        assert (here / "again.bin").read_bytes() == out


@needs("nbdfuse")
@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="/dev/fuse cannot be opened")
def test_nbdfuse_mounts_it_as_a_file(here: Path) -> None:
    data = generator(2, "content").integers(0, 256, 1 << 20, np.uint8).tobytes()
    (here / "drive.img").write_bytes(data)
    (here / "mounted").mkdir()
    script = """
        nbdfuse mounted/drive "$uri" & fuse=$!
        until [ -e mounted/drive ]; do kill -0 $fuse || exit 77; sleep 0.05; done
        cat mounted/drive > out.bin; code=$?
        fusermount3 -u mounted || umount mounted; wait; exit $code
    """
    result = serve(preset(here), "--time-scale", "0", "--read-only", "--content", "drive.img", run=script)
    if result.exit_code == 77:
        pytest.skip("nbdfuse cannot mount here")
    assert result.exit_code == 0, result.output
    assert (here / "out.bin").read_bytes() == data + bytes((32 << 20) - len(data))


@needs("fio")
def test_fio_verifies_what_it_wrote(here: Path) -> None:
    job = "fio --name=v --ioengine=nbd --rw=randwrite --bs=4k-64k --iodepth=8 --size=4m --verify=crc32c --fsync=16 --randseed=3"
    told = served(preset(here), "--time-scale", "0", "--trace", "t.parquet", run=f'{job} --uri="$uri" --output=fio.txt')
    assert "err= 0" in (here / "fio.txt").read_text()
    operations = told["drive"]["operations"]
    assert operations["write"]["bytes"] == operations["read"]["bytes"] == 4 << 20
    assert operations["flush"]["requests"] > 0
    table = open_trace(here / "t.parquet").read().to_pydict()
    assert len(table["id"]) == told["drive"]["requests"]
    assert sum(length for what, length in zip(table["operation"], table["length"], strict=True) if what == 1) == 4 << 20
    assert all(took > 0 for took in table["tag"])
    assert all(begin <= start <= end for begin, start, end in zip(table["arrival"], table["started"], table["completed"], strict=True))


def test_a_trace_of_serving_replays_in_the_same_times(here: Path, flashsim: Run) -> None:
    """In real time, served requests take what the drive takes, and the trace says so; its client is the test's own."""
    client = here / "client.py"
    client.write_text(
        "import sys; from pathlib import Path; from tests.apps.serving import nbd_client as nbd\n"
        "client = nbd.Client(Path('d.sock')); client.choose()\n"
        "for page in range(4): client.read(page * 4096, 4096)\n"
        "client.send(nbd.request(nbd.DISCONNECT))\n"
    )
    command = f"PYTHONPATH={ROOT} {sys.executable} client.py"
    told = served(preset(here, read="9.8ms", read_latency="9.9ms"), "--socket", "d.sock", "--trace", "t.parquet", run=command)
    table = open_trace(here / "t.parquet").read().to_pydict()
    assert [what - was for what, was in zip(table["completed"], table["arrival"], strict=True)] == [9_910_240] * 4
    assert all(took >= 9_910_240 for took in table["tag"])
    assert told["session"]["clients"] == 1 and told["session"]["broken"] == 0
    assert flashsim("trace replay t.parquet --device slow.toml --out again.parquet").exit_code == 0
    again = open_trace(here / "again.parquet").read().to_pydict()
    assert [end - again["arrival"][0] for end in again["completed"]] == [end - table["arrival"][0] for end in table["completed"]]


@contextmanager
def server(folder: Path, *words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A server in a process of its own, listening at ``d.sock``."""
    command = [sys.executable, "-m", "flashsim", "device", "serve", *map(str, words), "--socket", "d.sock"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert "at nbd+unix:///?socket=" in said, process.communicate()[1]
            yield process
        finally:
            process.kill()


def test_more_clients_than_can_be_served_are_sent_away_and_counted(here: Path) -> None:
    with server(here, preset(here), "--json", "s.json") as process, ExitStack() as clients:
        greetings = []
        for _ in range(MAXIMUM_CONNECTIONS + 3):
            client = clients.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            client.settimeout(seconds(10))
            client.connect(str(here / "d.sock"))
            greetings.append(client.recv(8))
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=seconds(60))
    assert greetings == [b"NBDMAGIC"] * MAXIMUM_CONNECTIONS + [b""] * 3
    assert f"3 connections were refused: at most {MAXIMUM_CONNECTIONS} clients at a time" in out
    session = json.loads((here / "s.json").read_text())["session"]
    assert (session["clients"], session["turned_away"]) == (MAXIMUM_CONNECTIONS, 3)
    assert f"at most {MAXIMUM_CONNECTIONS} clients" in " ".join((device_serve.__doc__ or "").split())


def test_clients_that_misbehave_leave_the_server_up(here: Path) -> None:
    """Garbage, torn requests, silence, a client that reads no replies: others are served, and SIGTERM ends it with its statistics."""
    with server(here, preset(here, read="1ms", read_latency="1.1ms"), "--json", "s.json", "--trace", "t.parquet") as process:
        path, random = here / "d.sock", generator(3, "noise")
        for _ in range(20):  # noise, at all stages
            client = nbd.Client(path)
            if random.random() < 0.5:
                client.choose()
            client.send(random.integers(0, 256, 100, np.uint8).tobytes())
            client.close()
        silent = nbd.Client(path)
        torn = nbd.Client(path)
        torn.choose()
        torn.send(nbd.request(nbd.WRITE, 0, 8192)[:-3])
        torn.close()
        gone = nbd.Client(path)
        gone.choose()
        gone.send(*[nbd.request(nbd.READ, run << 16, 1 << 16) for run in range(16)])
        gone.close()
        deaf = nbd.Client(path)
        deaf.choose()
        deaf.send(nbd.request(nbd.READ, 0, 1 << 20))
        deaf.receive(16)  # the rest of this reply is under way
        deaf.socket.setblocking(False)
        with pytest.raises(BlockingIOError):  # it is no longer read from
            for _ in range(10_000):
                deaf.socket.sendall(nbd.request(nbd.READ, 0, 1 << 20))
        good = nbd.Client(path)
        assert good.choose()[0] == 32 << 20
        assert good.ask(nbd.request(nbd.WRITE, 4096, cookie=1, data=b"x" * 512)) == 0
        assert good.read(4096, 1024) == b"x" * 512 + bytes(512)
        assert good.ask(nbd.request(nbd.READ, 1, 512)) == nbd.INVALID
        assert good.ask(nbd.request(nbd.WRITE, 32 << 20, data=b"x" * 512)) == nbd.NO_SPACE
        good.send(nbd.request(nbd.READ, 0, 4096, cookie=5), nbd.request(nbd.DISCONNECT))
        assert good.reply() == (0, 5) and good.receive(4096)[:1] == b"\0"
        with pytest.raises(EOFError):
            good.receive(1)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=seconds(60))
        for client in (silent, deaf):
            client.close()
        good.close()
    assert process.returncode == 0 and not without_progress(errors), errors
    assert not path.exists()
    assert "served for" in out and "requests were refused" in out and "connections broke off" in out
    told = json.loads((here / "s.json").read_text())
    assert told["session"]["clients"] == 25 and told["session"]["refused"] >= 2
    assert open_trace(here / "t.parquet").metadata.num_rows == told["drive"]["requests"]


def test_a_request_whose_client_has_gone_is_counted_as_unanswered(here: Path) -> None:
    """It takes an hour; one that is refused at once tells that the drive has it."""
    with server(here, preset(here, read="3599s", read_latency="3600s"), "--json", "s.json") as process:
        client = nbd.Client(here / "d.sock")
        client.choose()
        client.send(nbd.request(nbd.READ, 0, 4096))
        assert client.ask(nbd.request(nbd.READ, 1, 512)) == nbd.INVALID
        client.close()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=seconds(60))
    assert json.loads((here / "s.json").read_text())["unanswered"] == 1


def test_twenty_clients_that_read_nothing_take_no_more_than_one_cap_for_all(here: Path) -> None:
    with server(here, preset(here, read="1ms", read_latency="1.1ms"), "--time-scale", "0") as process:

        def most() -> int:
            """The most memory that the server has taken, KiB."""
            status = Path(f"/proc/{process.pid}/status").read_text()
            return int(status.partition("VmHWM:")[2].split()[0])

        good, deaf = nbd.Client(here / "d.sock"), []
        good.choose()
        before = most()
        for _ in range(20):
            client = nbd.Client(here / "d.sock")
            client.choose()
            client.send(*[nbd.request(nbd.READ, 0, 4 << 20)] * 64)
            deaf.append(client)
        for _ in range(20):
            assert good.read(4096, 4096) == bytes(4096)
        grown = most() - before
        for client in deaf[1:]:
            client.close()
        assert len(good.read(0, 32 << 20)) == 32 << 20  # of what they have left behind there is room
        deaf[0].close()
        good.close()
    assert grown < 400 << 10


def test_two_hundred_clients_may_knock_at_once(here: Path) -> None:
    with server(here, preset(here)) as process:
        process.send_signal(signal.SIGSTOP)  # it lets nobody in meanwhile
        clients = [socket.socket(socket.AF_UNIX) for _ in range(200)]
        for client in clients:
            client.setblocking(False)
            client.connect(str(here / "d.sock"))
        process.send_signal(signal.SIGCONT)
        for client in clients:
            client.close()


@pytest.mark.parametrize("length", [20, 107])
def test_a_socket_is_there_once_somebody_listens(length: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = here / ("s" * max(1, length - len(str(here)) - 1))
    before = []

    class Socket(socket.socket):
        def listen(self, *backlog: int) -> None:
            before.append(path.exists())
            super().listen(*backlog)

    monkeypatch.setattr(socket, "socket", Socket)
    with at_path(path, force=False):
        assert before == [False]
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        assert [each.name for each in here.iterdir()] == [path.name]
    assert list(here.iterdir()) == []


def test_sockets_that_are_there_already(here: Path, flashsim: Run) -> None:
    slow = preset(here)
    (here / "file.sock").write_text("kept")
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(here / "dead.sock"))
    alive = socket.socket(socket.AF_UNIX)
    alive.bind(str(here / "alive.sock"))
    alive.listen()
    dead.close()
    for name, force, said in (
        ("file.sock", "--force", "is not a socket"),
        ("alive.sock", "--force", "in use by a server"),
        ("dead.sock", "", "add --force"),
        ("no/d.sock", "", "no folder"),
        ("x" * 108, "", "at most 107 bytes"),
    ):
        result = flashsim(f"device serve {slow} --socket {name} {force}")
        assert result.exit_code == 2 and said in result.stderr, result.stderr
        assert result.stderr.count("\n") == 1
    alive.close()
    assert (here / "file.sock").read_text() == "kept"
    assert serve(slow, "--socket", "dead.sock", "--force", run="true").exit_code == 0
    assert not (here / "dead.sock").exists()


@pytest.mark.parametrize(
    "options, said",
    [
        ("", "--socket"),
        ("--socket s --port 0", "take one"),
        ("--socket s --listen 0.0.0.0", "--port"),
        ("--port 70000", "--port"),
        ("--port 0 --listen 192.0.2.1", "an address of this machine"),
        ("--socket s --time-scale -1", "--time-scale: -1"),
        ("--socket s --time-scale nan", "--time-scale: nan"),
        ("--socket s --precondition stedy", "did you mean steady"),
        ("--socket s --precondition steady --empty", "take one"),
        ("--socket s --content no/drive.img", "--content: cannot open no/drive.img"),
        ("--socket s --content missing.img --read-only", "cannot open missing.img"),
        ("--socket s --content big.img", "the drive holds"),
        ("--socket s --content a --json a", "also what --content"),
    ],
)
def test_bad_input_is_one_line(options: str, said: str, here: Path, flashsim: Run) -> None:
    slow = preset(here)
    (here / "big.img").touch()
    os.truncate(here / "big.img", (32 << 20) + 1)
    result = flashsim(f"device serve {slow} {options}")
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("flashsim: ") and said in result.stderr
    assert sorted(path.name for path in here.iterdir()) == ["big.img", "slow.toml"]


def test_the_exit_code_is_that_of_the_command(here: Path) -> None:
    result = serve(preset(here), "--port", "0", "--json", "s.json", run='case "$uri" in nbd://127.0.0.1:*) exit 7;; esac')
    assert result.exit_code == 7 and (here / "s.json").exists()
    assert serve(preset(here), run="kill -9 $$").exit_code == 137


def test_a_worn_drive_says_so(here: Path) -> None:
    script = (
        "from pathlib import Path; from tests.apps.serving import nbd_client as nbd\n"
        "client = nbd.Client(Path('d.sock')); client.choose(); codes = []\n"
        "for number in range(400): codes.append(client.ask(nbd.request(nbd.WRITE, number % 16 << 20, data=bytes(1 << 20))))\n"
        "print(sorted(set(codes)))"
    )
    (here / "client.py").write_text(script)
    worn = preset(here, endurance=2, spare_blocks=1, blocks_per_plane=10)
    result = serve(worn, "--time-scale", "0", "--socket", "d.sock", run=f"PYTHONPATH={ROOT} {sys.executable} client.py > codes.txt")
    assert result.exit_code == 0, result.output
    assert (here / "codes.txt").read_text() == f"[0, {nbd.PERMISSION}, {nbd.IO}]\n"
    assert "no spare block left" in result.stdout


def test_time_scale_stretches_time(here: Path) -> None:
    script = (
        "import time; from pathlib import Path; from tests.apps.serving import nbd_client as nbd\n"
        "client = nbd.Client(Path('d.sock')); client.choose(); began = time.monotonic()\n"
        "client.read(0, 4096); Path('took').write_text(str(time.monotonic() - began))"
    )
    (here / "client.py").write_text(script)
    for scale, read, latency, least, most in (("1.5", "999.8ms", "1s", 1.5, math.inf), ("0.0001", "999s", "1000s", 0.1, 1000)):
        command, slow = f"PYTHONPATH={ROOT} {sys.executable} client.py", preset(here, read=read, read_latency=latency)
        assert serve(slow, "--time-scale", scale, "--socket", "d.sock", run=command).exit_code == 0
        assert least <= float((here / "took").read_text()) < most
