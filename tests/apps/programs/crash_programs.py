"""Small programs that keep data safe from power cuts, or nearly: families with the syncs, checksums and sizes that decide it."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from flashsim.core.rng import generator

#: What programs and checks share: a version of `size` bytes with and without a checksum, and calls on files.
COMMON = """
import os, sys, zlib

def body(version, size, seal=True):
    "Bytes of a version: a number, and what follows from it in every sector; sealed with a checksum."
    data = b"%04d" % version + bytes((version * 7 + at // 512 + 1) % 251 for at in range(size - 8))
    return (b"%08x" % zlib.crc32(data))[:4] + data if seal else b"open" + data

def version(data, size, seal=True):
    "The version that bytes hold; 0 for none that is whole, and -1 for one that is believed but is not whole."
    if len(data) < size or not data[4:8].isdigit():
        return 0
    number = int(data[4:8])
    if data[:size] == body(number, size, seal):
        return number
    return 0 if seal else -1

def opened(name, flags=0):
    return os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o644)

def put(file, data, at=0):
    os.pwrite(file, data, at)

def sync(file):
    os.fsync(file)

def sync_folder(name="."):
    os.fsync(os.open(name, os.O_RDONLY))

def read(name):
    return open(name, "rb").read() if os.path.isfile(name) else b""

def acknowledge(number):
    os.write(1, b"%d\\n" % number)

def acknowledged():
    return max([0, *map(int, open(os.environ["FLASHSIM_PRINTED"]).read().split())])

def expect(condition, words):
    if not condition:
        sys.exit(words)
"""


class Program(NamedTuple):
    """A program, its check, and whether no power cut makes the check fail."""

    name: str
    program: str
    check: str
    is_safe: bool


class Family(NamedTuple):
    """A program and a check with parts that only some variants have: a line that ends in ``#? NAME`` stands only in those named."""

    program: str
    check: str
    #: Variants by name: the parts that they have, values, and whether they are safe.
    variants: dict[str, tuple[str, dict[str, object], bool]]


#: A file is replaced: written beside it, and renamed.
REPLACE = Family(
    """
for number in (1, 2):
    file = opened("shop.new", os.O_TRUNC)
    put(file, body(number, SIZE))
    sync(file)  #? data
    os.rename("shop.new", "shop")
    sync_folder()  #? folder
    acknowledge(number)
""",
    """
found = version(read("shop"), SIZE)
expect(found or not os.path.exists("shop"), "the file is not whole")
expect(found >= acknowledged(), "a version is lost")
""",
    {
        "small": ("data folder", {"SIZE": 100}, True),
        "large": ("data folder", {"SIZE": (5000, 9000)}, True),
        "data-unsynced": ("folder", {"SIZE": (600, 5000)}, False),
        "folder-unsynced": ("data", {"SIZE": (600, 5000)}, False),
    },
)

#: Pages are changed in place, and an undo journal has what they were.
UNDO = Family(
    """
data = opened("data")
for page in range(PAGES):
    put(data, body(1, SIZE, False), page * SIZE)
sync(data)
acknowledge(1)
for number in (2, 3):
    journal = opened("journal")
    put(journal, b"".join(body(number - 1, SIZE, SEAL) for page in range(PAGES)))
    sync(journal)  #? journal
    for page in range(PAGES):
        put(data, body(number, SIZE, False), page * SIZE)
    sync(data)  #? data
    os.unlink("journal")
    sync_folder()  #? folder
    acknowledge(number)
""",
    """
data, journal = read("data"), read("journal")
undo = [version(journal[page * SIZE :], SIZE, SEAL) for page in range(PAGES)]
if all(undo):
    expect(-1 not in undo, "the journal that is played back is torn")
    found = set(undo)
else:
    found = {version(data[page * SIZE :], SIZE, False) for page in range(PAGES)}
if acknowledged():
    expect(-1 not in found and 0 not in found and len(found) == 1, "the pages are mixed or torn")
    expect(found.pop() >= acknowledged(), "a transaction is lost")
""",
    {
        "sectors": ("journal data folder", {"SIZE": 512, "PAGES": 3, "SEAL": True}, True),
        "pages": ("journal data folder", {"SIZE": 4096, "PAGES": 2, "SEAL": True}, True),
        "odd-pages": ("journal data folder", {"SIZE": (600, 3000), "PAGES": 2, "SEAL": True}, True),
        "journal-unsynced": ("data folder", {"SIZE": 4096, "PAGES": 1, "SEAL": True}, False),
        "sectors-without-checksum": ("journal data folder", {"SIZE": 512, "PAGES": 3, "SEAL": False}, True),
        "data-unsynced": ("journal folder", {"SIZE": (600, 3000), "PAGES": 2, "SEAL": True}, False),
        "folder-unsynced": ("journal data", {"SIZE": 1024, "PAGES": 2, "SEAL": True}, False),
        "no-checksum": ("journal data folder", {"SIZE": (6000, 8192), "PAGES": 1, "SEAL": False}, False),
    },
)

#: Two copies of a record, of which the newest whole one counts.
COPIES = Family(
    """
files = [opened(name) for name in ("one", "two")]
for number in (1, 2, 3):
    for file in files:
        put(file, body(number, SIZE, SEAL))
        sync(file)  #? between
    [sync(file) for file in files]  #? both
    acknowledge(number)
""",
    """
found = [version(read(name), SIZE, SEAL) for name in ("one", "two")]
expect(-1 not in found, "a copy is torn")
expect(max(found) >= acknowledged(), "both copies are lost")
""",
    {
        "one-after-the-other": ("between", {"SIZE": 2048, "SEAL": True}, True),
        "pages": ("between", {"SIZE": 4096, "SEAL": True}, True),
        "sectors-together": ("both", {"SIZE": 512, "SEAL": True}, True),
        "together": ("both", {"SIZE": 1024, "SEAL": True}, False),
        "pages-together": ("both", {"SIZE": 4096, "SEAL": True}, False),
        "no-checksum": ("between", {"SIZE": (1100, 4096), "SEAL": False}, False),
    },
)

#: A write-ahead log, and a checkpoint that empties it.
LOG = Family(
    """
data, log = opened("data"), opened("log", FLAGS)
sync(data)  #? names
at = 0
for number in (1, 2, 3):
    put(log, body(number, SIZE, SEAL), at)
    sync(log)  #? log
    at += SIZE
    acknowledge(number)
    if number == 2:
        put(data, b"%04d" % number)
        sync(data)  #? data
        os.ftruncate(log, 0)
        sync(log)  #? log
        at = 0
""",
    """
data, log, found = read("data"), read("log"), 0
found = int(data[:4]) if data[:4].isdigit() else 0
while log:
    number = version(log, SIZE, SEAL)
    expect(number >= 0, "a record that is not whole is played")
    if number == 0:
        break
    found, log = max(found, number), log[SIZE:]
expect(found >= acknowledged(), "a record is lost")
""",
    {
        "short-records": ("log data names", {"SIZE": 300, "SEAL": True, "FLAGS": 0}, True),
        "long-records": ("log data names", {"SIZE": (1500, 6000), "SEAL": True, "FLAGS": 0}, True),
        "synchronous": ("data names", {"SIZE": (300, 3000), "SEAL": True, "FLAGS": "os.O_SYNC"}, True),
        "unsynced": ("data names", {"SIZE": (300, 3000), "SEAL": True, "FLAGS": 0}, False),
        "no-checksum": ("log data names", {"SIZE": (2200, 4000), "SEAL": False, "FLAGS": 0}, False),
        "sectors-without-checksum": ("log data names", {"SIZE": 512, "SEAL": False, "FLAGS": 0}, True),
        "checkpoint-unsynced": ("log names", {"SIZE": (300, 3000), "SEAL": True, "FLAGS": 0}, False),
    },
)

#: Pages are written to a second place before they are written in place.
DOUBLE = Family(
    """
data, twice = opened("data"), opened("twice")
for number in (1, 2, 3):
    put(twice, body(number, SIZE), 0)  #? twice
    sync(twice)  #? between
    put(data, body(number, SIZE, SEAL))
    sync(data)
    sync(twice)
    acknowledge(number)
""",
    """
found = version(read("data"), SIZE, SEAL)
expect(found >= 0, "the page is torn, and nothing tells so")
found = max(found, version(read("twice"), SIZE))
expect(found >= acknowledged(), "the page is torn in both places")
""",
    {
        "pages": ("twice between", {"SIZE": 4096, "SEAL": True}, True),
        "odd-pages": ("twice between", {"SIZE": (1100, 8000), "SEAL": True}, True),
        "sectors": ("twice", {"SIZE": 512, "SEAL": True}, True),
        "unsynced": ("twice", {"SIZE": 4096, "SEAL": True}, False),
        "no-checksum": ("twice between", {"SIZE": 4096, "SEAL": False}, False),
        "in-place": ("", {"SIZE": (1100, 4096), "SEAL": True}, False),
    },
)

#: New pages are written to a free place, and then a root says where they are.
SHADOW = Family(
    """
file = opened("tree")
put(file, bytes(8192))
sync(file)
for number in (1, 2, 3):
    place = 8192 + number % 2 * 8192
    put(file, body(number, SIZE, False), place)
    sync(file)  #? pages
    put(file, b"%04d%04d" % (number, place // 4096), ROOT)
    sync(file)
    acknowledge(number)
""",
    """
tree = read("tree")
root = tree[ROOT:][:8]
number = int(root[:4]) if root[:4].isdigit() else 0
if number:
    expect(int(root[4:]) == 2 + number % 2 * 2, "the root is torn")
    expect(version(tree[int(root[4:]) * 4096 :], SIZE, False) == number, "the root leads to pages that are not there")
expect(number >= acknowledged(), "a version is lost")
""",
    {
        "small": ("pages", {"SIZE": 300, "ROOT": 0}, True),
        "pages": ("pages", {"SIZE": (4096, 8192), "ROOT": 504}, True),
        "pages-unsynced": ("", {"SIZE": (600, 8192), "ROOT": 0}, False),
        "root-across-sectors": ("pages", {"SIZE": 300, "ROOT": 508}, False),
    },
)

#: A file's head says how many records follow; names are given, taken away and linked.
COUNTED = Family(
    """
file = opened("records")
for number in (1, 2, 3):
    put(file, body(number, SIZE, False), 512 + (number - 1) * SIZE)
    os.fdatasync(file)  #? records
    put(file, b"%04d" % number)
    os.fdatasync(file)
    acknowledge(number)
""",
    """
data = read("records")
count = int(data[:4]) if data[:4].isdigit() else 0
for number in range(1, count + 1):
    expect(version(data[512 + (number - 1) * SIZE :], SIZE, False) == number, "a record that counts is not there")
expect(count >= acknowledged(), "a record is lost")
""",
    {
        "short": ("records", {"SIZE": 64}, True),
        "long": ("records", {"SIZE": (700, 5000)}, True),
        "unsynced": ("", {"SIZE": (3600, 5000)}, False),
    },
)

#: Folders and names.
NAMES = Family(
    """
os.mkdir("new")
for name in ("new/a", "new/b"):
    file = opened(name)
    put(file, body(1, SIZE))
    sync(file)  #? files
os.rename("new", "now")
sync_folder()  #? folder
acknowledge(1)
os.link("now/a", "kept")
sync_folder()  #? link
acknowledge(2)
os.unlink("now/b")
sync_folder("now")  #? unlink
acknowledge(3)
""",
    """
last = acknowledged()
if os.path.exists("now"):
    expect(version(read("now/a"), SIZE), "a file of the folder is not whole")
    expect(not os.path.exists("now/b") or version(read("now/b"), SIZE), "the other file of the folder is not whole")
expect(last < 1 or os.path.exists("now/a"), "the folder is lost")
expect(last < 2 or os.path.exists("kept"), "the link is lost")
expect(last < 3 or not os.path.exists("now/b"), "the file is there again")
""",
    {
        "small": ("files folder link unlink", {"SIZE": 100}, True),
        "large": ("files folder link unlink", {"SIZE": (5000, 9000)}, True),
        "files-unsynced": ("folder link unlink", {"SIZE": (600, 5000)}, False),
        "link-unsynced": ("files folder unlink", {"SIZE": 100}, False),
        "unlink-unsynced": ("files folder link", {"SIZE": 100}, False),
    },
)

#: A page is written in place; one of a sector cannot be torn.
IN_PLACE = Family(
    """
file = opened("page", FLAGS)
put(file, bytes(16384))
sync(file)
for number in (1, 2, 3):
    put(file, body(number, SIZE, False), AT)
    sync(file)  #? page
    acknowledge(number)
""",
    """
data = read("page")[AT:]
found = version(data, SIZE, False)
expect(found >= 0, "the page is torn")
expect(found >= acknowledged(), "a version is lost")
""",
    {
        "sector": ("page", {"SIZE": 512, "AT": 1024, "FLAGS": 0}, True),
        "in-a-sector": ("page", {"SIZE": 100, "AT": (512, 900), "FLAGS": 0}, True),
        "synchronous-sector": ("", {"SIZE": 300, "AT": 4096, "FLAGS": "os.O_DSYNC"}, True),
        "across-sectors": ("page", {"SIZE": 100, "AT": (420, 500), "FLAGS": 0}, False),
        "across-pages": ("page", {"SIZE": 100, "AT": (4010, 4080), "FLAGS": 0}, False),
        "two-sectors-of-a-page": ("page", {"SIZE": 1024, "AT": 2048, "FLAGS": 0}, False),
        "unsynced-sector": ("", {"SIZE": 512, "AT": 0, "FLAGS": 0}, False),
    },
)

#: Three copies of a record that is replaced in place, of which one at least must be whole.
THREE = Family(
    """
files = [opened(name) for name in ("one", "two", "three")]
for file in files:
    put(file, body(1, SIZE))
    sync(file)
sync_folder()
acknowledge(1)
for file in files:
    put(file, body(2, SIZE))
    sync(file)  #? between
""",
    """
found = [version(read(name), SIZE) for name in ("one", "two", "three")]
expect(max(found) >= acknowledged(), "no copy is whole")
""",
    {"together": ("", {"SIZE": 4096}, False), "one-after-the-other": ("between", {"SIZE": 4096}, True)},
)

FAMILIES = {
    "replace": REPLACE,
    "undo": UNDO,
    "copies": COPIES,
    "log": LOG,
    "double": DOUBLE,
    "shadow": SHADOW,
    "counted": COUNTED,
    "names": NAMES,
    "in-place": IN_PLACE,
    "three": THREE,
}


def programs(seed: int) -> list[Program]:
    """All variants of all families; sizes that are ranges are drawn."""
    draw, every = generator(seed, "programs for power cuts"), list[Program]()
    for name, family in FAMILIES.items():
        for variant, (parts, values, is_safe) in family.variants.items():
            drawn = {key: int(draw.integers(*value)) if isinstance(value, tuple) else value for key, value in values.items()}
            head = COMMON + "".join(f"{key} = {value}\n" for key, value in drawn.items())
            lines = [line.partition("  #? ") for line in family.program.splitlines()]
            text = "\n".join(line for line, _, part in lines if not part or part in parts.split())
            every.append(Program(f"{name}-{variant}", head + textwrap.dedent(text), head + family.check, is_safe))
    return every
