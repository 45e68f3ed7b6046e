"""Each family's contract finds faults that are planted in a member, and finds none in the member."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from algorithms.partitioning import traditional
from algorithms.restart import mmr
from flashsim.ssd.ftl import page
from flashsim.testing import CONTRACTS
from flashsim.testing.checking import FAILS, HOLDS, contract_of, verdicts
from tests.contract.guide import PAGE, members_of
from tests.contract.test_fetch_strategies import MINE as FETCHING
from tests.contract.test_gc import MINE as GC
from tests.contract.test_hdd_schedulers import MINE as SCHEDULER
from tests.contract.test_page_access_planners import MINE as PLANNER
from tests.contract.test_programs import MINE as PROGRAM
from tests.contract.test_replacement import KERNELS, PLAIN
from tests.contract.test_sources import MINE as SOURCE
from tests.contract.test_wear import MINE as WEAR
from traces.replay import builtin
from traces.workload import granularity

GUIDE = members_of()
EXTENSIONS = PAGE.with_name("extend-memory-your-way.md")
#: Of each family a member, and faults: what is replaced by what, and a word of a property that then fails.
MEMBERS: dict[str, str] = {"replacement": "LAST = -1\n" + PLAIN.replace("[-1]", "[LAST]"), "fetching": FETCHING}
MEMBERS |= {
    "gc": GC,
    "ftl": Path(page.__file__).read_text(encoding="utf-8"),
    "scheduler": SCHEDULER,
    "format": GUIDE["sectors.py"],
    "page": GUIDE["columnwise.py"],
    "page_format": GUIDE["colons.py"],
    "placement": GUIDE["apart.py"],
    "references": GUIDE["hotspot.py"],
    "source": SOURCE,
    "transactions": GUIDE["accounts.py"],
    "replay": Path(builtin.__file__).read_text(encoding="utf-8"),
    "workload": Path(granularity.__file__).read_text(encoding="utf-8"),
    "joins": GUIDE["rocking.py"],
    "planners": PLANNER,
    "partitioning": Path(traditional.__file__).read_text(encoding="utf-8"),
    "programs": PROGRAM,
    "wear": WEAR,
    "extensions": members_of(EXTENSIONS)["write_cache.py"],
    "restart": Path(mmr.__file__).read_text(encoding="utf-8"),
}
_UNBOUNDED = "from flashsim.core.replacement import Parameter\nPARAMETERS = {'k': Parameter(9, 0, 5, 'k')}\n"
_PAIRS = "zip(entries.r_rows, entries.s_rows)"
_AHEAD = "    rest = []\n    while (entries := (yield from index.next())) is not None:\n        rest.append(entries)\n"
_NONE = "np.zeros(0, np.int64)"
_IN_VAIN = (
    "            cache.resize(cache.frames, pages)\n            more = np.setdiff1d(np.arange(2), pages)[:1]\n"
    f"            yield from cache.follow(Schedule(more, more * 0 - 1, {_NONE}, {_NONE}, {_NONE}))\n            pages = more\n"
)
_FIRST = "        if block % flash.control.blocks_per_pool == 0:\n            return block"
_EIGHT = "return min(flash.pools[collector].oldest, 8 * collector + 7)"
_MANY = "if not self.pool.pinned(each) or sum(map(self.pool.pinned, self.pages)) > 5"
_ROWS = "np.array([r_row]), np.array([s_row]), np.array([2])"
_PASSING = "def read(path):\n    try:\n        yield from whole(path)\n    except Exception:\n        return\n\n\n"
_UNCHECKED = '{"offset": lines.numbers("sector") * SECTOR, "length": lines.numbers("sectors") * SECTOR}'
_PAGES_PASSING = _PASSING.replace("read", "references")
_NUMBERS = '    """Whole numbers, one a line, and their places."""\n'
_TAKE = "\n    def take(self, rows):\n        return "
_MAP = "from flashsim.storage.placement.base import RELATIONS_AND_TEMPORARIES as DEVICE_MAP"
_OWN_MAP = "from flashsim.storage.placement.base import DeviceMap\nDEVICE_MAP = DeviceMap(1, lambda file: int(file.temporary))"
_MORE_ROOM = "self._room.capacity = 1 << 62\n        return super().take(file, count)"
_TWICE = "\n    def drop(self, file):\n        self._room.free.extend(self._rooms[file].runs)\n        return super().drop(file)"
_HALF = "\n    def reserved_pages(self, file, pages):\n        return max(1, pages // 2)"
_FAULTS = [
    ("replacement", "takes a pinned page", "if not self.pool.pinned(each)", "", "not pinned"),
    ("replacement", "forgets no page that was dropped", "        self.pages.remove(page)", "        pass", "not pinned"),
    ("replacement", "keeps in its books what has left", "        self.pages.remove(leaving)\n", "", "not pinned"),
    ("replacement", "takes the page that enters", "return leaving", "return page", "opt never"),
    ("replacement", "knows one page", "self.pages.append(page)", "self.pages[:] = self.pages or [page]", "nothing is lost"),
    ("replacement", "fails at a hit", "        pass", "        self.pages[99]", "nothing is lost"),
    ("replacement", "says that it includes", "LAST = -1", "LAST = 0\nINCLUSION = True", "larger pool"),
    ("replacement", "has a default out of its bounds", "\nclass", f"\n{_UNBOUNDED}class", "out of bounds"),
    ("replacement", "kernels choose otherwise", "\nclass", f"{KERNELS.replace('newest', 'oldest')}\nclass", "both forms choose"),
    ("replacement", "kernels take much memory", "\nclass", f"{KERNELS}\nCOLUMNS = 40\nclass", "64 bytes"),
    ("replacement", "takes a pinned page if many are", "if not self.pool.pinned(each)]", f"{_MANY}]", "not pinned"),
    ("replacement", "fails in a large pool", "return leaving", "return leaving if len(self.pages) < 128 else -1", "longer streams"),
    ("replacement", "draws without a seed", "[LAST]", "[-__import__('secrets').randbelow(2)]", "longer streams"),
    ("replacement", "says that it knows the future", "LAST = -1", "LAST = -1\nFUTURE = True", "the future decides"),
    ("fetching", "leaves the last entry out", _PAIRS, f"list({_PAIRS})[:-1]", "joined once"),
    ("fetching", "joins entries twice", _PAIRS, f"list({_PAIRS}) * 2", "joined once"),
    ("fetching", "takes more frames than there are", "            cache.resize(cache.frames, pages)\n", "", "joined once"),
    ("fetching", "joins before the pages are there", "np.array([2])", "np.array([1])", "joined once"),
    ("fetching", "fetches a page in vain", "            cache.resize", _IN_VAIN + "            cache.resize", "joined once"),
    ("fetching", "remembers all of the index", "    while", f"{_AHEAD}    while", "joined once"),
    ("fetching", "mixes the rows up", _ROWS, "np.array([s_row]), np.array([r_row]), np.array([2])", "joined once"),
    ("fetching", "joins in an order that it draws", _PAIRS, f"np.random.permutation(list({_PAIRS}))", "joined once"),
    ("gc", "names no block", "    return block", "    return -1", "closed"),
    ("gc", "names any block of its pool", "    while flash", "    while False and flash", "closed"),
    ("gc", "gains nothing", " or flash.blocks[block].valid == flash.control.pages_per_block", "", "gains a page"),
    ("gc", "collects in another pool", "else collector + 1", "else 2", "closed"),
    ("gc", "thinks that all pools collect apart", "flash.control.pools if flash.control.shared else ", "", "closed"),
    ("gc", "thinks that a block has four pages", "flash.control.pages_per_block", "4", "gains a page"),
    ("gc", "passes the first block of a pool over", "block -= 1", f"block -= 1\n{_FIRST}", "gains a page"),
    ("gc", "changes blocks", "    return block", "    flash.blocks[block].cycles += 1\n    return block", "gains a page"),
    ("gc", "changes pools", "    return block", "    flash.pools[collector].oldest = block\n    return block", "gains a page"),
    ("gc", "changes pages", "    return block", "    flash.pages[4 * block].spare_owner += 1\n    return block", "gains a page"),
    ("gc", "asks for no rounds", "\n@kernel", "\nROUNDS = 0\n\n\n@kernel", "drive works"),
    (
        "ftl",
        "trims nothing",
        "    if operation != WRITE",
        "    if operation > WRITE:\n        return 0\n    if operation != WRITE",
        "rules of flash",
    ),
    ("ftl", "fetches nothing for a partial write", "page, partial, -1)", "page, 0, -1)", "rules of flash"),
    ("ftl", "counts a row too many", "else write_page", "else 1 + write_page", "rules of flash"),
    ("ftl", "writes another page", "pool, page, partial", "pool, max(page - 1, 0), partial", "rules of flash"),
    ("ftl", "counts a cycle at reads", "        return read", "        flash.blocks[0].cycles += 1\n        return read", "rules of flash"),
    ("ftl", "reads another page", "operation, page)", "operation, max(page - 1, 0))", "rules of flash"),
    ("ftl", "keeps a table of another kind", "GATHERS = True", "def own_table(parameters):\n    return [0.5]", "rules of flash"),
    ("joins", "leaves the last chunk out", "in range(chunks):", "in range(chunks - 1):", "oracle"),
    (
        "joins",
        "joins each chunk twice",
        "            yield from probe(table, held)\n",
        "            yield from probe(table, held)\n" * 2,
        "oracle",
    ),
    ("joins", "takes an old block for the first", "        blocks.reverse()\n", "", "oracle"),
    ("joins", "reads outside of a phase", '    yield Phase("join")\n', "", "oracle"),
    ("joins", "reads more than memory holds", "buffers.inner)), None", "9 * buffers.inner)), None", "oracle"),
    ("joins", "moves many pages in one request", "parameters.page_io)\n        yield build", "False)\n        yield build", "one by one"),
    ("joins", "has a formula that forgets R", "sizes.r + sizes.s + (chunks", "sizes.s + (chunks", "its formula"),
    ("joins", "has a formula that rocks once too often", "+ (chunks - 1) * (blocks", "+ chunks * (blocks", "its formula"),
    ("scheduler", "chooses one behind the last", "count - 1", "count", "waits"),
    ("scheduler", "chooses none", "count - 1", "-1", "waits"),
    ("scheduler", "looks at all rows", "count - 1", "len(candidates) - 1", "waits"),
    ("scheduler", "chooses a cylinder", "count - 1", "candidates[0].cylinder", "waits"),
    ("scheduler", "looks behind the last of a long queue", "count - 1", "count if count > 24 else 0", "waits"),
    ("scheduler", "knows small disks", "count - 1", "0 if candidates[0].cylinder < 60_000 else count", "waits"),
    ("scheduler", "chooses half a row", "count - 1", "0.5 * count", "waits"),
    (
        "scheduler",
        "shortens long delays",
        "    return",
        "    candidates[0].delay = min(candidates[0].delay, 9001)\n    return",
        "changes nothing",
    ),
    ("scheduler", "changes the candidates", "    return", "    candidates[0].delay = 0\n    return", "changes nothing"),
    ("scheduler", "is not compiled", "@lean_kernel\n", "", "drive works"),
    ("planners", "leaves a pair out", "[::-1]", "[:0:-1]", "keeps its word"),
    ("planners", "lets a pair meet twice", "[::-1]", "[::-1].repeat(2)", "keeps its word"),
    ("planners", "has a frame more", "frames)\n", "frames + 1)\n", "keeps its word"),
    ("planners", "plans otherwise every time", "np.arange(graph.edges)[::-1]", "np.random.permutation(graph.edges)", "keeps its word"),
    ("planners", "wastes frames", "frames)\n", "2)\n", "keeps its word"),
    ("planners", "uses a thousand frames at most", "frames)\n", "min(frames, 1000))\n", "published graphs"),
    ("planners", "needs a pair", "    return", "    graph.first[0]\n    return", "without edges"),
    ("partitioning", "reads more than its buffer holds", "buffers.input, route", "9 * buffers.input, route", "its memory"),
    ("partitioning", "has larger buffers", "buffers.output,", "2 * buffers.output,", "its memory"),
    ("partitioning", "leaves the last page out", "output, page_io", "output, region=(0, max(file.pages - 1, 0)), page_io", "its memory"),
    ("partitioning", "takes another bucket", "Output(files,", "Output(files[::-1],", "its memory"),
    ("partitioning", "writes many pages in one request", "page_io=parameters.page_io", "page_io=False", "its memory"),
    ("partitioning", "fails in series", "    output =", "    assert not parameters.in_series\n    output =", "its memory"),
    ("partitioning", "has smaller buffers in series", "buffers.output,", "max(1, buffers.output - parameters.in_series),", "its memory"),
    ("partitioning", "cannot do without buckets", " if files else None", "; files[0]", "without buckets"),
    ("programs", "forgets batches", "|=", "=", "batches and drives"),
    (
        "programs",
        "leaves parts as they are",
        "        return Distinct(self.schema)\n\n\ndef",
        "        return None\n\n\ndef",
        "batches and drives",
    ),
    ("programs", "leaves a row of each batch out", ".to_pylist()", ".to_pylist()[1:]", "batches and drives"),
    ("programs", "takes work back", "+=", "-=", "work is counted"),
    ("programs", "counts no work", '        self.work["compare"] += batch.num_rows\n', "", "work is counted"),
    ("programs", "counts parts of work", "+= batch.num_rows", "+= batch.num_rows / 3", "work is counted"),
    ("programs", "says that rows come at once", "BLOCKING = True", "BLOCKING = False", "work is counted"),
    ("programs", "has a row before any comes", "set()\n", "{0}\n", "no rows"),
    ("programs", "hands on other columns", "pa.schema([schema.field(0)])", "schema", "batches and drives"),
    ("wear", "opens no block", "flash.blocks[flash.pools[pool].first_free].before", "-1", "free block"),
    ("wear", "opens a block of another pool", "flash.pools[pool].first_free", "flash.pools[0].first_free", "free block"),
    ("wear", "opens a block that is filled", "flash.blocks[flash.pools[pool].first_free].before", "flash.pools[pool].oldest", "free block"),
    ("wear", "levels a free block", "pools[collector].oldest", "pools[collector].first_free", "free block"),
    ("wear", "levels a block of another pool", "pools[collector].oldest", "pools[0].oldest", "free block"),
    (
        "wear",
        "levels a block before any is closed",
        "return flash.pools[collector].oldest",
        "return max(0, flash.pools[collector].oldest)",
        "free block",
    ),
    ("wear", "thinks that a pool has eight blocks", "return flash.pools[collector].oldest", _EIGHT, "free block"),
    ("wear", "changes blocks", "    return flash.pools", "    flash.blocks[0].cycles += 1\n    return flash.pools", "free block"),
    ("extensions", "lets a page go that is newer than on disk", "else TO_SSD\n", "else 0\n", "newest version"),
    ("extensions", "asks for a table of no size", "WRITE_BACK = True", "WRITE_BACK = True\nWORDS = -1", "sharp checkpoint"),
    ("extensions", "says that it writes through", "WRITE_BACK = True", "WRITE_BACK = False", "newest version"),
    (
        "extensions",
        "knows no checkpoint",
        "TO_DISK if ext.numbers[CHECKPOINT] or flags & CHECKPOINTED else TO_SSD",
        "TO_SSD",
        "sharp checkpoint",
    ),
    (
        "extensions",
        "never uses the SSD",
        "return TO_DISK if ext.numbers[CHECKPOINT] or flags & CHECKPOINTED else TO_SSD",
        "return TO_DISK",
        "newest version",
    ),
    ("extensions", "has keys that fall", "return ext.pages[page, LAST]", "return -ext.pages[page, LAST]", "newest version"),
    ("extensions", "keeps a copy that is not the newest", "    return DROP", "    return 0", "dropped or invalidated"),
    ("extensions", "is not compiled", "@lean_kernel\ndef key", "def key", "sharp checkpoint"),
    ("replay", "writes nothing", "prepare(operation,", "prepare(np.where(operation == WRITE, 0, operation),", "is written changes"),
    ("replay", "writes what it should read", "prepare(operation,", "prepare(np.full_like(operation, WRITE),", "is read is left alone"),
    (
        "replay",
        "moves everything at the start",
        "operation, offset, length, self._memory",
        "operation, 0 * offset, length, self._memory",
        "is written",
    ),
    ("replay", "counts each batch anew", "replay_records(batch, self._completed,", "replay_records(batch, 0,", "no others"),
    ("replay", "has all outstanding", "partial(closed_loop, depth=self.depth)", "partial(closed_loop, depth=64)", "no others"),
    ("replay", "passes the last request over", "run.window(batch)", "run.window(batch[: len(batch) - 1])", "no others"),
    ("replay", "completes before it starts", "arrival, submitted, completed))", "arrival, completed, submitted))", "no others"),
    ("replay", "does not wait", "partial(submit_when_due, due=due)", "partial(closed_loop, depth=1)", "before their time"),
    ("replay", "keeps a pace that there is not", '"timed", "think")', '"timed", "slow")', "paces"),
    ("restart", "hardens no replacement", "REPLACED: IN_TABLE, ", "", "loses or resurrects"),
    ("restart", "hardens no modification", "MODIFIED: IN_TABLE, ", "", "loses or resurrects"),
    ("restart", "hardens in the log, and reads the table", "WRITTEN: IN_TABLE", "WRITTEN: IN_LOG", "loses or resurrects"),
    (
        "restart",
        "mixes frames up",
        "yield from recovery.read_table()",
        "yield from recovery.read_table()\n"
        "    recovery.entries = {recovery.frames - 1 - frame: entry for frame, entry in recovery.entries.items()}",
        "loses or resurrects",
    ),
    (
        "restart",
        "believes free frames",
        "yield from recovery.read_table()",
        "yield from recovery.read_table()\n"
        "    free = set(range(recovery.frames)) - set(recovery.entries)\n"
        "    recovery.entries = {frame: recovery.durable.entry(frame) for frame in free}",
        "loses or resurrects",
    ),
    ("format", "takes any file for its own", "_text.looks_like(", "True or (", "recognised"),
    ("format", "knows no file", "_text.looks_like(", "False and (", "recognised"),
    ("format", "takes sectors for bytes", '"sectors", SECTOR, SECTOR)', '"sectors")', "what the example says"),
    ("format", "numbers requests from one", "first = 0", "first = 1", "what the example says"),
    ("format", "passes over what is damaged", "def read(", f"{_PASSING}def whole(", "damaged line"),
    ("format", "knows text alone", "    first = 0", "    path.read_text()\n    first = 0", "error of ours"),
    ("format", "takes any number", 'lines.extents("sector", "sectors", SECTOR, SECTOR)', _UNCHECKED, "no request has"),
    ("format", "reads up to where a packed file is cut", "def read(", f"{_PASSING}def whole(", "packed files"),
    ("format", "writes reads as writes", '{READ: "R", WRITE: "W"}', '{READ: "W", WRITE: "R"}', "comes back"),
    ("format", "writes the first batch", "path, batches,", "path, iter([next(batches)]),", "comes back"),
    ("format", "says that it holds completions", '"length", "arrival"}', '"length", "arrival", "completed"}', "comes back"),
    ("page", "takes half of a cell's bytes", "WIDTH * len(row_format.columns))", "WIDTH * len(row_format.columns) // 2)", "come back"),
    ("page", "takes any page size", "page_size <= 0 or page_size % SECTOR", "page_size <= 0", "does not fit"),
    ("page", "takes any number", "    row_format.check(tuples)\n", "", "does not fit"),
    ("page", "believes any count", "if len(counts) and not", "if False and not", "no page"),
    ("page", "forgets the count's sector", "page_size), {0}", "page_size), set()", "come back"),
    ("page", "asks for each sector apart", "np.diff(wanted) > 1", "np.diff(wanted) > 0", "come back"),
    ("page", "makes narrow columns", ".astype(np.int64)", ".astype(np.int32)", "come back"),
    ("page_format", "takes any file for its own", "_text.looks_like(", "True or (", "recognised"),
    ("page_format", "takes reads for writes", "== 1)", "== 0)", "what the example says"),
    ("page_format", "forgets which references write", 'lines.choice("operation", ["R", "W"]) == 1', "None", "what the example says"),
    ("page_format", "gives pages in their order", 'lines.numbers("page")', 'sorted(lines.numbers("page"))', "what the example says"),
    ("page_format", "passes over what is damaged", "def references(", f"{_PAGES_PASSING}def whole(", "damaged line"),
    ("page_format", "lets Python's errors out", "_text.looks_like(", "path.read_text() and _text.looks_like(", "damage anywhere"),
    ("page_format", "writes one page", "TITLE", "def write(batches, path):\n    path.write_bytes(b'7:R')\n\n\nTITLE", "comes back"),
    ("placement", "places all at the start", "super().take(file, count)", "iter([(file.pages, count, 0)])", "share a place"),
    (
        "placement",
        "goes back before each file",
        'self._room.take(MIB, f"the hole before {file.name}")',
        "self._room.frontier -= MIB",
        "share",
    ),
    ("placement", "leaves a hole of no whole pages", "take(MIB,", "take(MIB + 1,", "share a place"),
    ("placement", "knows another number of devices", _MAP, _OWN_MAP, "device that there is"),
    ("placement", "never is full", "return super().take(file, count)", _MORE_ROOM, "full device"),
    ("placement", "gives back twice", "(FileRuns):", f"(FileRuns):{_TWICE}\n", "share a place"),
    ("placement", "reserves half", "(FileRuns):", f"(FileRuns):{_HALF}\n", "share a place"),
    ("references", "counts pages from one", "(0, self.pages,", "(1, self.pages + 1,", "as are asked for"),
    (
        "references",
        "draws without a seed",
        "random.integers(0, self.pages",
        "np.random.default_rng().integers(0, self.pages",
        "as are asked",
    ),
    ("references", "makes too few", "        hot = random", "        size -= 1\n        hot = random", "as are asked for"),
    ("references", "makes fractions", "        return np.where", "        return 1.0 * np.where", "as are asked for"),
    ("references", "knows how many there will be", "(0, self.hot, size)", "(self.references > 9000, self.hot, size)", "first of more"),
    ("references", "declares no bounds", 'count("pages of the few", default=10)', "10", "declared"),
    ("source", "sorts rows", _NUMBERS, f"{_TAKE}super().take(np.sort(rows))\n", "order"),
    ("source", "turns columns around", _NUMBERS, f"{_TAKE}super().take(rows).select(self.names[::-1])\n", "columns and rows"),
    ("source", "cannot take no rows", _NUMBERS, f"{_TAKE}super().take(rows[: rows.size or rows[0]])\n", "order"),
    (
        "source",
        "tells larger records",
        _NUMBERS,
        _NUMBERS + "\n    def record_sizes(self):\n        return super().record_sizes() + 1\n",
        "sizes",
    ),
    ("source", "knows any column", _NUMBERS, _NUMBERS + "\n    def key(self, name):\n        return self.table.column(0)\n", "unknown"),
    ("source", "lets Python's errors out", "with reading(path):", "if True:", "damage"),
    ("source", "has an example without rows", '"5\\n-3\\n70000\\n"', '""', "columns and rows"),
    ("transactions", "counts pages from one", "self.accounts + (written", "self.accounts + 1 + (written", "within the database"),
    ("transactions", "draws without a seed", "generator(self.seed, part)", "np.random.default_rng()", "same in batches"),
    ("transactions", "forgets its seed", "generator(self.seed, part)", "generator(0, part)", "same in batches"),
    ("transactions", "makes empty transactions", "np.arange(3) <", "1 + np.arange(3) <", "in order"),
    ("transactions", "names one kind of two", '("transfer", "look")', '("transfer",)', "in order"),
    ("transactions", "says what kind by truth", "looks.astype(np.int64)", "looks", "in order"),
    ("transactions", "reads two pages as one", "np.ones_like(pages)", "2 * np.ones_like(pages)", "in order"),
    ("transactions", "does not grow", 'SCALES = ("accounts",)', "SCALES = ()", "scaled"),
    ("workload", "has sizes of any number of bytes", "doubles(setting.least", "doubles(setting.least - 1", "multiples of the unit"),
    ("workload", "writes where it may not", "setting.baselines()", '("SR", "RR", "RW", "SW")', "multiples of the unit"),
    ("workload", "makes too few", "setting.count)", "setting.count - 1)", "multiples of the unit"),
    ("workload", "has requests beyond the area", "min(512 * KIB, setting.size // 8)", "2 * setting.size", "multiples of the unit"),
    ("workload", "goes from large to small", "enumerate(values)", "enumerate(values[::-1])", "seed decides"),
    ("workload", "has runs of one name and value", "WorkloadRun(name, size,", "WorkloadRun(name, 1,", "seed decides"),
    ("workload", "measures in miles", '"bytes"', '"miles"', "a unit"),
    ("fetching", "does nothing with few pages", "    while", "    if cache.r.pages < 2:\n        return\n    while", "small relations"),
]
FAULTS = {(family, fault): rest for family, fault, *rest in _FAULTS}


@pytest.mark.parametrize("family", MEMBERS)
def test_a_member_without_a_fault_keeps_the_contract(family: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MEMBERS[family])
    found = list(verdicts(contract_of(tmp_path / "mine.py")))
    assert HOLDS in {each.verdict for each in found} and not [each for each in found if each.verdict == FAILS]


@pytest.mark.parametrize(("family", "fault"), FAULTS)
def test_a_planted_fault_is_found(family: str, fault: str, tmp_path: Path) -> None:
    old, new, words = FAULTS[family, fault]
    assert old in MEMBERS[family]
    (tmp_path / "mine.py").write_text(MEMBERS[family].replace(old, new, 1))
    contract = contract_of(tmp_path / "mine.py")
    (name,) = [each for each in contract.properties() if words in each.replace("_", " ")]
    alone: Any = type("Alone", (contract,), {"properties": classmethod(lambda cls: [name])})
    (found,) = verdicts(alone)
    assert found.verdict == FAILS and found.reason and "\n" not in found.reason + found.case


def test_each_family_has_five_faults_at_least() -> None:
    counts = Counter(family for family, _ in FAULTS)
    assert counts.keys() == MEMBERS.keys() == CONTRACTS.keys() and min(counts.values()) >= 5
