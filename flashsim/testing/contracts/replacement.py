"""The contract of replacement policies: both forms choose alike, and no pool loses a page or a change by its choices."""

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from algorithms.replacement.base import REPLACEMENT, replacement_policy
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.replacement import FIRST_PAGE, ReplacementPolicy
from flashsim.storage.content import token_file
from flashsim.storage.pool.buffer_pool import BufferPool
from flashsim.storage.pool.reference import TOOK_FREE, WAS_RESIDENT, WRITE_BACK, PlainPool
from flashsim.storage.pool.simulation import PlainSimulation, Simulation, simulation
from flashsim.testing.contract import Contract, examples
from flashsim.testing.pools import forms, next_uses, pages_of_letters

__all__ = ["ReplacementContract"]

#: What is done to a page: most of it are references.
READ, WRITE, PIN, UNPIN, CLEAN, DROP = "read", "write", "pin", "unpin", "clean", "drop"
_DONE = [READ] * 5 + [WRITE] * 3 + [PIN, UNPIN, CLEAN, DROP]
STEPS = st.lists(st.tuples(st.sampled_from(_DONE), st.integers(FIRST_PAGE, FIRST_PAGE + 11)), max_size=80)
PAGES = st.lists(st.integers(FIRST_PAGE, FIRST_PAGE + 9), max_size=80)


def load_policy(name: str) -> ReplacementPolicy:
    """A policy, loaded once unless its file changes."""
    return _load_policy(name, Path(name).stat().st_mtime_ns if name.endswith(".py") else 0)


@cache
def _load_policy(name: str, changed: int) -> ReplacementPolicy:
    return replacement_policy(name)


def with_drawn(name: str, data: st.DataObject) -> ReplacementPolicy:
    """A policy with the values that it has, or with any others that it takes."""
    declared = REPLACEMENT.load(name).PARAMETERS
    if not declared or data.draw(st.booleans(), "as it is"):
        return load_policy(name)
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


def fewest_misses(frames: int, pages: Iterable[int]) -> int:
    """The optimum by trying everything: the fewest misses so far for every set of pages that may be held."""
    states: dict[frozenset[int], int] = {frozenset(): 0}
    for page in pages:
        after: dict[frozenset[int], int] = {}
        for held, misses in states.items():
            if page in held:
                ways = [(held, misses)]
            elif len(held) < frames:
                ways = [(held | {page}, misses + 1)]
            else:
                ways = [(held - {leaving} | {page}, misses + 1) for leaving in held]
            for way, cost in ways:
                after[way] = min(cost, after.get(way, cost))
        states = after
    return min(states.values())


def misses(name: str, pages: list[int], frames: int) -> int:
    """Misses of a policy that begins with an empty pool."""
    pool = simulation(load_policy(name), frames)
    pool.refer(np.array(pages, np.int32), None, np.array(next_uses(pages, [False] * len(pages)), np.int32))
    return pool.counts.misses


def is_included(policy: ReplacementPolicy, text: str, small: int, large: int) -> bool:
    """Whether a larger pool holds all that a smaller one holds, at any time."""
    pages = pages_of_letters(text)
    pools = [forms(policy, frames)[0] for frames in (small, large)]
    writes = [letter.isupper() for letter in text]
    for page, write, use in zip(pages, writes, next_uses(pages, writes), strict=True):
        for pool in pools:
            pool.refer(page, write, use)
        if not pools[0].held_pages() <= pools[1].held_pages():
            return False
    return True


#: Three pages enter.
_FILLED = [(WRITE, FIRST_PAGE + page) for page in range(3)]


class ReplacementContract(Contract):
    """Properties of a replacement policy (`algorithms.replacement.base`)."""

    FAMILY = REPLACEMENT

    @examples(50)
    @given(steps=STEPS, frames=st.integers(1, 7), data=st.data())
    @example(steps=[(WRITE, FIRST_PAGE + page) for page in (0, 1, 0, 2, 1, 0)], frames=1, data=None)
    @example(steps=[(WRITE, FIRST_PAGE + page) for page in (0, 1, 0, 2, 1, 0)], frames=2, data=None)
    @example(steps=[*_FILLED, (DROP, 1), (PIN, 0), (WRITE, FIRST_PAGE + 3), (WRITE, FIRST_PAGE + 4)], frames=3, data=None)
    def test_both_forms_choose_alike_and_nothing_is_lost(
        self, steps: list[tuple[str, int]], frames: int, data: st.DataObject | None
    ) -> None:
        """After each step both forms hold the same, whatever is referenced, changed, pinned, written back and dropped in between."""
        policy = load_policy(self.name) if data is None else with_drawn(self.name, data)
        pools, ledger = forms(policy, frames), Ledger(frames)
        references = [(page, action == WRITE) for action, page in steps if action in (READ, WRITE)]
        uses = iter(next_uses([page for page, _ in references], [write for _, write in references]))
        for action, page in steps:
            if action not in (READ, WRITE) and ledger.held:
                page = sorted(ledger.held)[page % len(ledger.held)]
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

    @examples(50)
    @given(
        turns=st.lists(st.tuples(st.integers(FIRST_PAGE, FIRST_PAGE + 15), st.integers(0, 8), st.booleans()), max_size=60),
        frames=st.sampled_from([2, 3, 5, 9]),
    )
    def test_the_one_page_that_is_not_pinned_leaves(self, turns: list[tuple[int, int, bool]], frames: int) -> None:
        """Wherever it stands, and whatever was dropped since the pool was filled; a page that is there can be used whatever is pinned."""
        turns = [*((FIRST_PAGE + frame, 0, False) for frame in range(frames)), *turns]
        pools, uses = forms(load_policy(self.name), frames), next_uses([page for page, _, _ in turns], [False] * len(turns))
        for (page, place, drop), use in zip(turns, uses, strict=True):
            for pool in pools:
                held = sorted(pool.held_pages())
                pinned = [each for number, each in enumerate(held) if number != place % frames] if len(held) == frames else []
                for each in pinned:
                    pool.pin(each, True)
                outcome = pool.refer(page, next_use=use)
                if page not in held and pinned:
                    assert outcome % WRITE_BACK == held[place % frames]
                for each in pinned:
                    pool.pin(each, False)
                if drop:
                    pool.drop(sorted(pool.held_pages())[place % len(pool.held_pages())])

    def test_both_forms_count_alike_over_longer_streams(self) -> None:
        """Pages of unequal popularity, scans and loops, in batches; with the least and the most of all parameters too.

        A policy of one form counts alike twice.
        """
        for frames in (30, 300):
            random = np.random.default_rng(frames)
            parts = [
                np.minimum(random.zipf(1.2, 400), 200),
                np.arange(300, 400),
                np.tile(np.arange(frames + 5), 3),
                random.integers(0, 90, 400),
            ]
            pages = (FIRST_PAGE + np.concatenate(parts * 2)).astype(np.int32)
            writes = (random.random(len(pages)) < 0.3).astype(np.uint8)
            uses = np.array(next_uses(pages.tolist(), writes.tolist()), np.int32)
            declared = REPLACEMENT.load(self.name).PARAMETERS
            for values in ({}, {each: one.least for each, one in declared.items()}, {each: one.most for each, one in declared.items()}):
                policy = replacement_policy(self.name, **values)
                kinds = [each for each, has in ((Simulation, policy.kernels), (PlainSimulation, policy.plain)) if has is not None]
                pools = [each(policy, frames) for each in (kinds[0], kinds[-1])]
                for begin, end in pairwise([0, 1, 500, len(pages)]):
                    for pool in pools:
                        pool.refer(pages[begin:end], writes[begin:end], uses[begin:end])
                counts = pools[0].counts
                assert counts == pools[1].counts, "two forms, or two runs of one, count otherwise"
                assert counts.references == len(pages) and counts.writes == writes.sum() and counts.first == len(np.unique(pages))
                assert counts.evictions == counts.misses - frames and counts.write_backs <= min(counts.writes, counts.evictions)

    @examples(30)
    @given(pages=st.lists(st.integers(FIRST_PAGE, FIRST_PAGE + 5), max_size=16), frames=st.integers(1, 4))
    def test_no_policy_misses_less_than_the_best_of_all_ways(self, pages: list[int], frames: int) -> None:
        """And OPT does not miss more: all sets of pages that may be held are tried."""
        best = fewest_misses(frames, pages)
        missed = misses(self.name, pages, frames)
        assert missed == best if self.name == "opt" else missed >= best

    @examples(50)
    @given(pages=PAGES, frames=st.integers(1, 7))
    def test_opt_never_misses_more(self, pages: list[int], frames: int) -> None:
        assert misses("opt", pages, frames) <= misses(self.name, pages, frames)

    @examples(100)
    @given(text=st.text("abcdefghijABCDEFGHIJ", max_size=80), sizes=st.tuples(st.integers(1, 5), st.integers(1, 4)))
    def test_a_larger_pool_holds_all_that_a_smaller_one_holds(self, text: str, sizes: tuple[int, int]) -> None:
        """The inclusion property, of a policy that claims it by INCLUSION."""
        if not REPLACEMENT.load(self.name).INCLUSION:
            pytest.skip("the policy does not say so by INCLUSION")
        assert is_included(load_policy(self.name), text, sizes[0], sum(sizes))

    def test_the_future_decides_if_future_says_so(self) -> None:
        """A third page enters: which of two leaves depends on which is asked for next, or does not."""
        policy, leaving = load_policy(self.name), set[int]()
        for text in ("abca", "abcb"):
            pool, pages = forms(policy, 2)[0], pages_of_letters(text)
            leaving.add([pool.refer(page, next_use=use) for page, use in zip(pages, next_uses(pages, [False] * 4), strict=True)][2])
        assert policy.future == (len(leaving) > 1), f"FUTURE is {policy.future}, but two futures give {len(leaving)} victims"

    def test_a_page_and_a_frame_take_64_bytes_at_most(self) -> None:
        policy, frames = replacement_policy(self.name), 100_000
        if policy.kernels is not None:
            assert sum(array.nbytes for array in policy.state(frames, frames)) <= 64 * frames + 4096

    def test_a_pool_whose_frames_are_all_held_says_so(self) -> None:
        """In one line, before the policy is asked; a page that is there can still be used."""
        policy = replacement_policy(self.name)
        if policy.kernels is not None:
            files = BufferPool(policy, 2, [token_file("tokens", 5, 512)])
            if policy.future:
                with pytest.raises(InvalidParameterError, match=f"policy: '{self.name}', but it must know the future"):
                    files.fix(np.array([3, 1]))
            else:
                files.fix(np.array([3, 1]))
                with pytest.raises(InvalidParameterError, match="fix: 1 pages, but 0 of 2 frames are not fixed"):
                    files.fix(np.array([2]))
                files.unfix(np.array([3]))
                assert files.fix(np.array([2])).victims.tolist() == [3]
        if policy.plain is None:
            return
        pool = PlainPool(policy, 2)
        first, second, third = pages_of_letters("abc")
        for page in (first, second):
            pool.refer(page)
            pool.pins.add(page)
        assert pool.refer(first) == WAS_RESIDENT
        with pytest.raises(InvalidParameterError, match="fix: page 10, but 0 of 2 frames are not fixed"):
            pool.refer(third)
        pool.pins.remove(second)
        assert pool.refer(third) == second

    def test_unknown_names_and_values_out_of_bounds_are_refused(self) -> None:
        with pytest.raises(UnknownNameError, match="nonsense"):
            replacement_policy(f"{self.name}:nonsense=1")
        for each, one in REPLACEMENT.load(self.name).PARAMETERS.items():
            assert one.least <= one.default <= one.most and one.meaning
            for value in (one.least - 1, one.most + 1):
                with pytest.raises(InvalidParameterError, match=f"{each} of .*: {value}, but it must be a whole number from"):
                    replacement_policy(self.name, **{each: value})
