"""Each family's contract finds faults that are planted in a member, and finds none in the member."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from flashsim.ssd.ftl import page
from flashsim.testing import CONTRACTS
from flashsim.testing.checking import FAILS, HOLDS, contract_of, verdicts
from tests.contract.guide import members_of
from tests.contract.test_fetch_strategies import MINE as FETCHING
from tests.contract.test_gc import MINE as GC
from tests.contract.test_hdd_schedulers import MINE as SCHEDULER
from tests.contract.test_replacement import KERNELS, PLAIN

#: Of each family a member, and faults: what is replaced by what, and a word of a property that then fails.
MEMBERS: dict[str, str] = {"replacement": "LAST = -1\n" + PLAIN.replace("[-1]", "[LAST]"), "fetching": FETCHING}
MEMBERS |= {
    "gc": GC,
    "ftl": Path(page.__file__).read_text(encoding="utf-8"),
    "scheduler": SCHEDULER,
    "joins": members_of()["rocking.py"],
}
_UNBOUNDED = "from flashsim.core.replacement import Parameter\nPARAMETERS = {'k': Parameter(9, 0, 5, 'k')}\n"
_PAIRS = "zip(entries.r_rows, entries.s_rows)"
_AHEAD = "    rest = []\n    while (entries := (yield from index.next())) is not None:\n        rest.append(entries)\n"
_NO_TRIM = "    if operation > WRITE:\n        return 0\n    if operation != WRITE:"
_ROWS = "np.array([r_row]), np.array([s_row]), np.array([2])"
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
    ("fetching", "leaves the last entry out", _PAIRS, f"list({_PAIRS})[:-1]", "joined once"),
    ("fetching", "joins entries twice", _PAIRS, f"list({_PAIRS}) * 2", "joined once"),
    ("fetching", "takes more frames than there are", "            cache.resize(cache.frames, pages)\n", "", "joined once"),
    ("fetching", "joins before the pages are there", "np.array([2])", "np.array([1])", "joined once"),
    ("fetching", "remembers all of the index", "    while", f"{_AHEAD}    while", "joined once"),
    ("fetching", "mixes the rows up", _ROWS, "np.array([s_row]), np.array([r_row]), np.array([2])", "joined once"),
    ("gc", "names no block", "    return block", "    return -1", "closed"),
    ("gc", "names any block of its pool", "    while flash", "    while False and flash", "closed"),
    ("gc", "gains nothing", " or flash.blocks[block].valid == flash.control.pages_per_block", "", "gains a page"),
    ("gc", "collects in another pool", "(collector + 1) *", "2 *", "closed"),
    ("gc", "changes blocks", "    return block", "    flash.blocks[block].cycles += 1\n    return block", "gains a page"),
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
    ("scheduler", "chooses one behind the last", "count - 1", "count", "waits"),
    ("scheduler", "chooses none", "count - 1", "-1", "waits"),
    ("scheduler", "looks at all rows", "count - 1", "len(candidates) - 1", "waits"),
    ("scheduler", "chooses a cylinder", "count - 1", "candidates[0].cylinder", "waits"),
    ("scheduler", "changes the candidates", "    return", "    candidates[0].delay = 0\n    return", "changes nothing"),
    ("scheduler", "is not compiled", "@lean_kernel\n", "", "drive works"),
    ("fetching", "does nothing with few pages", "    while", "    if cache.r.pages < 2:\n        return\n    while", "small relations"),
]
FAULTS = {(family, fault): rest for family, fault, *rest in _FAULTS}


@pytest.mark.parametrize("family", MEMBERS)
def test_a_member_without_a_fault_keeps_the_contract(family: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MEMBERS[family])
    assert {each.verdict for each in verdicts(contract_of(tmp_path / "mine.py"))} >= {HOLDS}
    assert not [each for each in verdicts(contract_of(tmp_path / "mine.py")) if each.verdict == FAILS]


@pytest.mark.parametrize(("family", "fault"), FAULTS)
def test_a_planted_fault_is_found(family: str, fault: str, tmp_path: Path) -> None:
    old, new, words = FAULTS[family, fault]
    assert old in MEMBERS[family]
    (tmp_path / "mine.py").write_text(MEMBERS[family].replace(old, new, 1))
    failing = [each for each in verdicts(contract_of(tmp_path / "mine.py")) if each.verdict == FAILS]
    assert any(words in each.contract_property for each in failing), failing
    assert all(each.reason and "\n" not in each.reason + each.case for each in failing)


def test_each_family_has_five_faults_at_least() -> None:
    counts = Counter(family for family, _ in FAULTS)
    assert counts.keys() == MEMBERS.keys() == CONTRACTS.keys() and min(counts.values()) >= 5
