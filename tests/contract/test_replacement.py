"""Every replacement policy: both forms choose alike, and no pool loses a page or a change by its choices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.replacement.base import REPLACEMENT, replacement_policy
from flashsim.core.errors import FlashsimError, InvalidParameterError, UnknownNameError
from flashsim.core.kernel import compiled
from flashsim.core.replacement import FIRST_PAGE, ReplacementPolicy
from flashsim.storage.content import token_file
from flashsim.storage.pool.buffer_pool import BufferPool
from flashsim.storage.pool.reference import TOOK_FREE, WAS_RESIDENT, WRITE_BACK, PlainPool
from flashsim.storage.pool.simulation import PlainSimulation, Simulation, simulation
from tests.contract.naive_pools import FREE, HIT, NAIVE, Outcomes, References, fewest_misses
from tests.contract.pools import Kernels, forms, next_uses, numbered

#: A policy of one's own, in both forms: the page that entered last leaves.
PLAIN = """
class Plain:
    def __init__(self, pool):
        self.pool, self.pages = pool, []

    def hit(self, page):
        pass

    def enter(self, page):
        self.pages.append(page)

    def victim(self, page):
        leaving = [each for each in self.pages if not self.pool.pinned(each)][-1]
        self.pages.remove(leaving)
        return leaving

    def forget(self, page):
        self.pages.remove(page)
"""
KERNELS = """
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import newest, push, take_out


@lean_kernel
def hit(pool, page):
    pass


@lean_kernel
def enter(pool, page):
    push(pool, 0, page)


@lean_kernel
def victim(pool, page):
    leaving = newest(pool, 0)
    take_out(pool, leaving)
    return leaving
"""
NINE = """
from flashsim.core.replacement import Parameter
PARAMETERS = dict.fromkeys('abcdefghi', Parameter(0, 0, 1, "one too many"))
"""
OWN = {"plain.py": PLAIN, "kernels.py": KERNELS, "both.py": KERNELS + PLAIN}
NAMES = REPLACEMENT.names()
#: Pages, a capital where one is written, and two numbers of frames, of which the larger pool misses what the smaller one holds at the end.
EXCEPTIONS = {
    "2q": ("2q", "abcad", 2, 3),
    "arc": ("arc", "aabcbd", 2, 3),
    "car": ("car", "abcabdbadc", 2, 3),
    "cflru": ("cflru:window=50", "ABcdEafgbfdhc", 4, 6),
    "clock": ("clock", "ababcd", 2, 3),
    "clock-pro": ("clock-pro", "ababcd", 2, 3),
    "fifo": ("fifo", "abcad", 2, 3),
    "gclock": ("gclock", "ababcd", 2, 3),
    "lfu": ("lfu", "abbcacd", 2, 3),
    "lru-k": ("lru-k:retained=1", "aabcbcd", 2, 3),
    "lru-wsr": ("lru-wsr", "AbCBDEfB", 2, 3),
    "opt-write-back": ("opt-write-back", "ABcBabdcbA", 2, 3),
    "random": ("random", "abcdbebf", 2, 3),
    "s3-fifo": ("s3-fifo", "abcad", 2, 3),
    "sieve": ("sieve", "aabbcd", 2, 3),
    "w-tinylfu": ("w-tinylfu", "abbccccbabad", 2, 3),
}
#: Policies that do not say so, but no exception was found in 47,000 streams of up to 200 references.
UNKNOWN = ["lirs"]
INCLUDING = [*UNKNOWN, *(each for each in NAMES if REPLACEMENT.load(each).INCLUSION)]
#: What is done to a page: most of it are references.
READ, WRITE, PIN, UNPIN, CLEAN, DROP = "read", "write", "pin", "unpin", "clean", "drop"
_DONE = [READ] * 5 + [WRITE] * 3 + [PIN, UNPIN, CLEAN, DROP]
STEPS = st.lists(st.tuples(st.sampled_from(_DONE), st.integers(FIRST_PAGE, FIRST_PAGE + 11)), max_size=80)
PAGES = st.lists(st.integers(FIRST_PAGE, FIRST_PAGE + 9), max_size=80)


@pytest.fixture(scope="module", params=[*NAMES, *OWN])
def name(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every member, and files of one's own."""
    if request.param not in OWN:
        return str(request.param)
    path = tmp_path_factory.mktemp("own") / request.param
    path.write_text(OWN[request.param], encoding="utf-8")
    return str(path)


loaded = cache(replacement_policy)


def with_drawn(name: str, data: st.DataObject) -> ReplacementPolicy:
    """A policy with the values that it has, or with any others that it takes."""
    declared = REPLACEMENT.load(name).PARAMETERS
    if not declared or data.draw(st.booleans(), "as it is"):
        return loaded(name)
    values = {
        each: data.draw(st.sampled_from([one.least, one.most]) | st.integers(one.least, min(one.most, one.least + 8)), each)
        for each, one in declared.items()
    }
    return replacement_policy(name, **values)


class Ledger:
    """What a pool holds by its answers, and what is stored of each page by what was written back: the number of its last change."""

    def __init__(self, frames: int) -> None:
        self.frames, self.held, self.pinned = frames, set[int](), set[int]()
        self.changes, self.stored, self.changed = dict[int, int](), dict[int, int](), 0

    def lets(self, action: str, page: int) -> bool:
        """Whether something can be done now; one frame stays free to be used, and pages that are held are not dropped."""
        if action == PIN:
            return page in self.held and len(self.pinned | {page}) < self.frames
        if action == DROP:
            return page in self.held - self.pinned
        return page in self.held or action in (READ, WRITE)

    def refer(self, page: int, write: bool, outcome: int) -> None:
        """Compare an answer with what was there."""
        leaving = outcome % WRITE_BACK
        assert (page in self.held) == (outcome == WAS_RESIDENT)
        if page not in self.held:
            assert (len(self.held) < self.frames) == (leaving == TOOK_FREE)
        if leaving >= FIRST_PAGE:
            assert leaving in self.held - self.pinned and leaving != page
            assert (outcome >= WRITE_BACK) == (self.changes.get(leaving) != self.stored.get(leaving)), "once, and not in vain"
            self.write_back(leaving)
            self.held.discard(leaving)
        self.held.add(page)
        if write:
            self.changed += 1
            self.changes[page] = self.changed

    def write_back(self, page: int) -> None:
        """Store a page as it is."""
        if page in self.changes:
            self.stored[page] = self.changes[page]

    def check(self) -> None:
        """Nothing is lost: what is not held is stored as it was last changed."""
        assert len(self.held) <= self.frames
        for page, change in self.changes.items():
            assert page in self.held or self.stored[page] == change


@settings(max_examples=50)
@given(steps=STEPS, frames=st.integers(1, 7), data=st.data())
@example(steps=[(WRITE, FIRST_PAGE + page) for page in (0, 1, 0, 2, 1, 0)], frames=1, data=None)
@example(steps=[(WRITE, FIRST_PAGE + page) for page in (0, 1, 0, 2, 1, 0)], frames=2, data=None)
def test_both_forms_choose_alike_and_nothing_is_lost(
    name: str, steps: list[tuple[str, int]], frames: int, data: st.DataObject | None
) -> None:
    """Whatever is referenced, changed, held, given up, written back and dropped in between: after each step both forms hold the same."""
    policy = loaded(name) if data is None else with_drawn(name, data)
    pools, ledger = forms(policy, frames), Ledger(frames)
    references = [(page, action == WRITE) for action, page in steps if action in (READ, WRITE)]
    uses = iter(next_uses([page for page, _ in references], [write for _, write in references]))
    for action, page in steps:
        if not ledger.lets(action, page):
            continue
        if action in (READ, WRITE):
            use = next(uses)
            outcomes = {pool.refer(page, action == WRITE, use) for pool in pools}
            assert len(outcomes) == 1
            ledger.refer(page, action == WRITE, outcomes.pop())
        for pool in pools:
            if action in (PIN, UNPIN):
                pool.pin(page, action == PIN)
            elif action == CLEAN:
                pool.clean(page)
            elif action == DROP:
                pool.drop(page)
        if action in (CLEAN, DROP):
            ledger.write_back(page)
        if action in (PIN, UNPIN):
            (ledger.pinned.add if action == PIN else ledger.pinned.discard)(page)
        if action == DROP:
            ledger.held.discard(page)
        ledger.check()
        assert all(pool.held_pages() == ledger.held for pool in pools)


@pytest.mark.parametrize("frames", [30, 70])
def test_both_forms_count_alike_over_longer_streams(name: str, frames: int) -> None:
    """Pages of unequal popularity, scans and loops, in batches; with the least and the most of all parameters too."""
    random = np.random.default_rng(frames)
    parts = [np.minimum(random.zipf(1.2, 400), 200), np.arange(300, 400), np.tile(np.arange(frames + 5), 4), random.integers(0, 90, 400)]
    pages = (FIRST_PAGE + np.concatenate(parts * 2)).astype(np.int32)
    writes = (random.random(len(pages)) < 0.3).astype(np.uint8)
    uses = np.array(next_uses(pages.tolist(), writes.tolist()), np.int32)
    declared = REPLACEMENT.load(name).PARAMETERS
    for values in ({}, {each: one.least for each, one in declared.items()}, {each: one.most for each, one in declared.items()}):
        policy = replacement_policy(name, **values)
        pools = [each(policy, frames) for each, has in ((Simulation, policy.kernels), (PlainSimulation, policy.plain)) if has is not None]
        for begin, end in pairwise([0, 1, 500, len(pages)]):
            for pool in pools:
                pool.refer(pages[begin:end], writes[begin:end], uses[begin:end])
        assert len({pool.counts for pool in pools}) == 1
        counts = pools[0].counts
        assert counts.references == len(pages) and counts.writes == writes.sum() and counts.first == len(np.unique(pages))
        assert counts.evictions == counts.misses - frames and counts.write_backs <= min(counts.writes, counts.evictions)


@settings(max_examples=30)
@given(pages=st.lists(st.integers(FIRST_PAGE, FIRST_PAGE + 5), max_size=16), frames=st.integers(1, 4))
def test_no_policy_misses_less_than_the_best_of_all_ways(name: str, pages: list[int], frames: int) -> None:
    """And OPT does not miss more: all sets of pages that may be held are tried."""
    best = fewest_misses(frames, pages)
    missed = misses(name, pages, frames)
    assert missed == best if name == "opt" else missed >= best


@settings(max_examples=50)
@given(pages=PAGES, frames=st.integers(1, 7))
def test_opt_never_misses_more(name: str, pages: list[int], frames: int) -> None:
    assert misses("opt", pages, frames) <= misses(name, pages, frames)


def misses(name: str, pages: list[int], frames: int) -> int:
    """Of a policy, from an empty pool."""
    pool = simulation(loaded(name), frames)
    pool.refer(np.array(pages, np.int32), None, np.array(next_uses(pages, [False] * len(pages)), np.int32))
    return pool.counts.misses


def is_included(policy: ReplacementPolicy, text: str, small: int, large: int) -> bool:
    """Whether a larger pool holds all that a smaller one holds, at any time."""
    pages = numbered(text)
    pools = [forms(policy, frames)[0] for frames in (small, large)]
    writes = [letter.isupper() for letter in text]
    for page, write, use in zip(pages, writes, next_uses(pages, writes), strict=True):
        for pool in pools:
            pool.refer(page, write, use)
        if not pools[0].held_pages() <= pools[1].held_pages():
            return False
    return True


@pytest.mark.parametrize("name", INCLUDING)
@given(text=st.text("abcdefghijABCDEFGHIJ", max_size=80), sizes=st.tuples(st.integers(1, 5), st.integers(1, 4)))
def test_a_larger_pool_holds_all_that_a_smaller_one_holds(name: str, text: str, sizes: tuple[int, int]) -> None:
    """Of the policies that say so."""
    assert is_included(loaded(name), text, sizes[0], sum(sizes))


@pytest.mark.parametrize("name", [each for each in NAMES if each not in INCLUDING and not each.endswith(".py")])
def test_a_larger_pool_does_not_hold_all_that_a_smaller_one_holds(name: str) -> None:
    """Of the policies that do not say so: each has its exception."""
    policy, text, small, large = EXCEPTIONS[name]
    assert is_included(replacement_policy(policy), text[:-1], small, large)
    assert not is_included(replacement_policy(policy), text, small, large)


def test_a_larger_pool_may_miss_more() -> None:
    """The anomaly of FIFO that Belady, Nelson and Shedler found, with their references."""
    pages = numbered("abcdabeabcde")
    assert [misses("fifo", pages, frames) for frames in (3, 4)] == [9, 10]
    assert all(misses(name, pages, 4) <= misses(name, pages, 3) for name in INCLUDING)


@pytest.mark.parametrize(("name", "parameters", "naive"), NAIVE)
@given(
    references=st.lists(st.tuples(st.integers(FIRST_PAGE, FIRST_PAGE + 9), st.booleans()), max_size=80),
    frames=st.integers(1, 7),
)
def test_the_same_pages_leave_as_of_searched_lists(
    name: str, parameters: dict[str, int], naive: Callable[[int, References], Outcomes], references: References, frames: int
) -> None:
    pool = forms(replacement_policy(name, **parameters), frames)[0]
    told = {WAS_RESIDENT: HIT, TOOK_FREE: FREE}
    outcomes = [pool.refer(page, write) % WRITE_BACK for page, write in references]
    assert [told.get(outcome, outcome) for outcome in outcomes] == list(naive(frames, references))


def test_random_draws_all_frames_alike() -> None:
    """5,000 victims of ten frames, 430 to 570 of each (3.3 standard deviations), and other ones by another seed."""
    pages = np.arange(FIRST_PAGE, FIRST_PAGE + 5010)
    found = []
    for seed in (0, 1):
        pool = Kernels(replacement_policy("random"), 10, 6000, seed)
        frame_of, frames = dict[int, int](), list[int]()
        for page in pages.tolist():
            leaving = pool.refer(page)
            frame = frame_of[leaving] if leaving >= FIRST_PAGE else page - FIRST_PAGE
            frame_of[page] = frame
            frames.append(frame)
        assert 430 <= np.bincount(frames[10:]).min() <= np.bincount(frames[10:]).max() <= 570
        found.append(frames)
    assert np.mean(np.array(found[0]) == found[1]) < 0.2


def test_a_page_and_a_frame_take_64_bytes_at_most(name: str) -> None:
    policy, frames = replacement_policy(name), 100_000
    if policy.kernels is not None:
        assert sum(array.nbytes for array in policy.state(frames, frames)) <= 64 * frames + 4096


@pytest.mark.parametrize(("file", "has"), [("plain.py", [False, True]), ("kernels.py", [True, False]), ("both.py", [True, True])])
def test_a_file_of_ones_own_has_either_form_or_both(file: str, has: list[bool], tmp_path: Path) -> None:
    (tmp_path / file).write_text(OWN[file])
    policy = replacement_policy(str(tmp_path / file))
    assert [policy.kernels is not None, policy.plain is not None] == has
    assert misses(policy.name, numbered("abcabc"), 2) == 5
    if policy.plain is None:
        with pytest.raises(FlashsimError, match=r"kernels\.py' has no plain form"):
            PlainSimulation(policy, 2)


#: Edits of a file of one's own, in its plain form and in its kernels; what is told of it; at which reference.
BREACHES = [
    ("return leaving", "return None", "return -1", "the victim is not the number of a page", 3),
    ("return leaving", "return 'a'", "return 1 << 20", "the victim is not (the number of a page|resident)", 3),
    ("return leaving", "return page", "return page", "the victim is the page that is about to enter", 3),
    ("return leaving", "return 8", "return 8", "the victim is not resident", 4),
    ("return leaving", "return 7", "return 7", "the victim is not (the number of a page|resident)", 3),
]


@pytest.mark.parametrize(("old", "plain", "kernel", "rule", "reference"), BREACHES)
@pytest.mark.parametrize("file", ["plain.py", "kernels.py"])
def test_a_policy_that_breaks_the_contract_is_named_with_the_rule_and_the_reference(
    file: str, old: str, plain: str, kernel: str, rule: str, reference: int, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(OWN[file].replace(old, plain if file == "plain.py" else kernel))
    pool = simulation(replacement_policy(str(tmp_path / file)), 2)
    with pytest.raises(FlashsimError, match=rf"{file}' broke its contract at reference {reference}: {rule}$") as refusal:
        pool.refer(np.array(numbered("abcdefgh"), np.int32))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("file", ["plain.py", "kernels.py"])
def test_a_policy_that_chooses_a_pinned_page_is_named(file: str, tmp_path: Path) -> None:
    careless = OWN[file].replace("if not self.pool.pinned(each)", "").replace("newest(pool, 0)", "pool.pages[0, 1]")
    (tmp_path / file).write_text(careless)
    (pool,) = forms(replacement_policy(str(tmp_path / file)), 2)
    for page in numbered("ab"):
        pool.refer(page)
    pool.pin(numbered("b")[0], True)
    with pytest.raises(FlashsimError, match=rf"{file}' broke its contract at reference 3: the victim is pinned$"):
        pool.refer(numbered("c")[0])


def test_a_plain_form_that_fails_is_named_with_its_function_and_the_reference(tmp_path: Path) -> None:
    edits = {
        "hit failed with KeyError: 8": ("        pass", "        {}[page]"),
        "victim failed with ValueError: list.remove": ("self.pages.remove(leaving)", "self.pages.remove(-5)"),
        "forget failed with ZeroDivisionError": ("        self.pages.remove(page)", "        1 // 0"),
    }
    for number, (told, (old, new)) in enumerate(edits.items()):
        path = tmp_path / f"wrong{number}.py"
        path.write_text(PLAIN.replace(old, new))
        with pytest.raises(FlashsimError, match=rf"wrong{number}\.py' broke its contract at reference \d: {told}"):
            fails(PlainPool(replacement_policy(str(path)), 2))
    (tmp_path / "unmade.py").write_text(PLAIN.replace("self, pool)", "self)"))
    with pytest.raises(FlashsimError, match="at reference 0: Plain failed with TypeError"):
        PlainPool(replacement_policy(str(tmp_path / "unmade.py")), 2)


def test_a_kernel_that_fails_is_named_with_the_reference(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(KERNELS.replace("    pass", "    raise ValueError('one or\\ntwo lines')"))
    with pytest.raises(
        FlashsimError, match=r"wrong\.py' broke its contract at reference 2: a kernel failed with ValueError: one or two lines$"
    ):
        misses(str(tmp_path / "wrong.py"), numbered("aab"), 2)


def fails(pool: PlainPool) -> None:
    """Two pages, a hit, a victim, and a page that is dropped."""
    for page in numbered("aab"):
        pool.refer(page)
    pool.refer(numbered("c")[0])
    pool.drop(min(pool.resident))


def test_a_pool_whose_frames_are_all_held_says_so(name: str) -> None:
    """In one line, before the policy is asked; a page that is there can still be used."""
    policy = replacement_policy(name)
    if policy.kernels is not None:
        files = BufferPool(policy, 2, [token_file("tokens", 5, 512)])
        if policy.future:
            with pytest.raises(InvalidParameterError, match=f"policy: '{name}', but it must know the future"):
                files.fix(np.array([3, 1]))
        else:
            files.fix(np.array([3, 1]))
            with pytest.raises(InvalidParameterError, match="fix: 1 pages, but 0 of 2 frames are not held by somebody"):
                files.fix(np.array([2]))
            files.unfix(np.array([3]))
            assert files.fix(np.array([2])).victims.tolist() == [3]
    if policy.plain is None:
        return
    pool = PlainPool(policy, 2)
    first, second, third = numbered("abc")
    for page in (first, second):
        pool.refer(page)
        pool.pins.add(page)
    assert pool.refer(first) == WAS_RESIDENT
    with pytest.raises(InvalidParameterError, match="fix: page 10, but 0 of 2 frames are not held by somebody"):
        pool.refer(third)
    pool.pins.remove(second)
    assert pool.refer(third) == second


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (KERNELS.replace("def victim", "def chosen"), "does not define Plain, or hit, enter, victim"),
        ("x = 1", "does not define Plain, or hit, enter, victim"),
        ("1 +", "cannot be imported: SyntaxError"),
        (KERNELS.replace("def hit(pool, page)", "def hit(pool)"), "hit of '.*' takes 1 parameters, but the family's takes 2"),
        (PLAIN.replace("def hit(self, page)", "def hit(self)"), "hit of Plain of '.*' takes 1 parameters, but it must take self and page"),
        (PLAIN.replace("def forget", "def drop"), "Plain of '.*' does not define forget"),
        (PLAIN + "WORDS = 10**9", "WORDS of '.*' is 1000000000, but it must be a whole number from 0 to 32"),
        (PLAIN + "PARAMETERS = {'k': 5}", "PARAMETERS of '.*' must have a flashsim.core.replacement.Parameter for each name"),
        (PLAIN + "COLUMNS = lambda values: values['k']", "COLUMNS of '.*' failed with KeyError: 'k'"),
        (KERNELS + "hit = 5", "hit of '.*' is no function"),
        (PLAIN + "COLUMNS = -1", "COLUMNS of '.*' is -1, but it must be a whole number from 0 to 61"),
        (
            PLAIN + NINE,
            "the length of PARAMETERS of '.*' is 9, but it must be a whole number from 0 to 8",
        ),
        pytest.param(
            KERNELS.replace("@lean_kernel\ndef hit", "def hit"),
            "hit of '.*' must be decorated with",
            marks=pytest.mark.skipif(not compiled(), reason="nothing is compiled"),
        ),
        pytest.param(
            KERNELS.replace("pool, leaving", "pool, nowhere"),
            "does not compile .*; run with NUMBA_DISABLE_JIT=1",
            marks=pytest.mark.skipif(not compiled(), reason="nothing is compiled"),
        ),
    ],
)
def test_files_that_are_no_policies_are_refused(source: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(FlashsimError, match=message) as refusal:
        replacement_policy(str(path))
    assert "\n" not in str(refusal.value) and "mine.py" in str(refusal.value)


def test_unknown_names_and_values_out_of_bounds_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match="nonsense"):
        replacement_policy(f"{name}:nonsense=1")
    for each, one in REPLACEMENT.load(name).PARAMETERS.items():
        assert one.least <= one.default <= one.most and one.meaning
        for value in (one.least - 1, one.most + 1):
            with pytest.raises(InvalidParameterError, match=f"{each} of .*: {value}, but it must be a whole number from"):
                replacement_policy(name, **{each: value})
