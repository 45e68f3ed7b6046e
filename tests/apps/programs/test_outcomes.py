"""Outcomes of a cut are those of a plain enumeration, each once; of too many, wide ones, and pairs of a lost and a torn, come first."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from flashsim.apps.programs.outcomes import Outcomes
from flashsim.apps.programs.volatile_files import PAGE, Page, Remains, VolatileFiles
from flashsim.core.rng import generator
from tests.apps.programs.test_volatile_files import CREATE_B, call, files, play, write
from tests.cases import with_each
from traces.calls import schema

MANY = 10**6


def outcomes(state: VolatileFiles, seed: int = 0, tears: bool = True) -> Outcomes:
    return Outcomes(state, generator(seed, "outcomes"), tears)


def images(state: VolatileFiles, remains: list[Remains]) -> set[str]:
    return {str(sorted(state.image(each).items())) for each in remains}


def choices_of(state: VolatileFiles) -> dict[Page, list[tuple[int, int, int]]]:
    """For each page two numbers of its writes, and a sector from which on it has the second."""
    writes = Counter(patch.page for patch in state.patches)
    return {
        page: [
            (one, two, part)
            for one in range(writes[page] + 1)
            for two in range(writes[page] + 1)
            for part in range(8)
            if one != two or not part
        ]
        for page in sorted(writes)
    }


def plain_images(state: VolatileFiles) -> set[str]:
    """Images of all outcomes, sector by sector: any number of changes, and each page with any two of its versions, parted anywhere."""
    found = set[str]()
    pages = sorted({patch.page for patch in state.patches})
    choices = choices_of(state)
    for changes in range(len(state.changes) + 1):
        for each in itertools.product(*choices.values()):
            contents = dict(state.contents)
            names = dict(state.names)
            effects: list[Any] = sorted([*state.changes[:changes], *state.patches], key=lambda effect: effect.call)
            seen = dict.fromkeys(pages, 0)
            for effect in effects:
                if effect in state.changes:
                    assert effect.kind in ("create", "rename")
                    names[effect.other or effect.path] = names.pop(effect.path, effect.file)
                    contents.setdefault(effect.file, b"")
                    continue
                seen[effect.page] += 1
                one, two, sector = each[pages.index(effect.page)]
                data = bytearray(contents.get(effect.file, b""))
                begin, end = effect.offset, effect.offset + len(effect.content)
                for place in range(begin // 512 * 512, end, 512):
                    first, behind = max(begin, place), min(end, place + 512)
                    if seen[effect.page] <= (one if place % PAGE < sector * 512 else two):
                        data.extend(bytes(max(0, behind - len(data))))
                        data[first:behind] = effect.content[first - begin : behind - begin]
                contents[effect.file] = bytes(data)
            found.add(str(sorted((path, contents.get(file, b"")) for path, file in names.items())))
    return found


def drawn_state(draw: np.random.Generator) -> VolatileFiles:
    """Few writes to two files, one of them new and then perhaps renamed."""
    calls = [call("openat", 1, "/b", flags=schema.CREATE)]
    for number in range(int(draw.integers(1, 4))):
        file, begin = int(draw.integers(2)), int(draw.integers(PAGE - 600, PAGE + 700))
        calls.append(write(file, "/ab"[file + 1], begin, bytes([65 + number]) * int(draw.integers(1, 1300))))
    if draw.random() < 0.5:
        calls.insert(int(draw.integers(1, len(calls) + 1)), call("rename", 1, "/b", other="/c"))
    state = play(files(a=b"old" * 1500), *calls)
    return state if math.prod(map(len, choices_of(state).values())) < 2000 else drawn_state(draw)


@pytest.mark.parametrize("seed", range(3))
def test_all_outcomes_are_those_of_a_plain_enumeration(seed: int) -> None:
    state = drawn_state(generator(seed, "states"))
    all_of_them = outcomes(state)
    remains = list(all_of_them.take(MANY))
    assert images(state, remains) == plain_images(state)
    assert all_of_them.possible is not None and len(remains) == all_of_them.possible.total() == all_of_them.tried.total()
    assert not all_of_them.untried_classes()


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3, 60))
def test_all_outcomes_are_those_of_a_plain_enumeration_of_many_states(seed: int) -> None:
    test_all_outcomes_are_those_of_a_plain_enumeration(seed)


def test_only_sectors_that_were_written_are_torn() -> None:
    state = play(files(a=b"o" * PAGE), write(0, "/a", 1000, b"n" * 600))
    new = b"o" * 1000 + b"n" * 600 + b"o" * (PAGE - 1600)
    expected = {new, b"o" * PAGE, b"o" * 1024 + new[1024:], new[:1024] + b"o" * (PAGE - 1024)}
    expected |= {b"o" * 1536 + new[1536:], new[:1536] + b"o" * (PAGE - 1536)}
    assert {state.image(each)["/a"] for each in outcomes(state).take(MANY)} == expected
    assert {state.image(each)["/a"] for each in outcomes(state, tears=False).take(MANY)} == {new, b"o" * PAGE}


def test_bytes_that_a_write_leaves_as_they_were_make_no_outcome() -> None:
    state = play(files(a=b"o" * PAGE), write(0, "/a", 0, b"o" * (PAGE - 1) + b"n"))
    assert len(list(outcomes(state).take(MANY))) == 2


def test_a_page_without_its_name_or_behind_a_truncation_that_is_not_there_is_one_outcome() -> None:
    truncated = call("ftruncate", 0, "/a", length=0)
    state = play(files(a=b"old"), truncated, write(0, "/a", 0, b"n"), CREATE_B, write(1, "/b", 0, b"b"))
    assert len(list(outcomes(state).take(MANY))) == 1 + 2 + 2 * 2


def six_pages() -> VolatileFiles:
    pages = [write(0, "/a", number * PAGE, bytes([97 + number]) * PAGE) for number in range(6)]
    return play(files(a=b""), *pages, call("openat", 1, "/b", flags=schema.CREATE))


def test_of_too_many_outcomes_so_many_are_drawn_without_repetition_and_pairs_first() -> None:
    some = outcomes(six_pages())
    remains = list(some.take(120))
    keys = {(each.changes, *sorted(each.patches.items()), *sorted(each.torn.items())) for each in remains}
    assert len(remains) == len(keys) == some.tried.total() == 120
    assert some.possible is not None and some.possible.total() == 2 * 16**6
    lost = [6 - sum(each.patches.values()) + (each.changes == 0) for each in remains]
    assert all(number == 1 and len(each.torn) == 1 for number, each in zip(lost[5:], remains[5:41], strict=False))
    assert len(remains[4].torn) == 6
    pairs = {(tuple(page for page, writes in each.patches.items() if not writes), *each.torn) for each in remains[5:41]}
    assert len(pairs) == 36 and list(outcomes(six_pages(), seed=1).take(120)) != remains == list(outcomes(six_pages()).take(120))


@with_each("seed", range(5))
def test_all_pages_and_the_ends_of_all_files_are_torn_or_lost_before_any_draw(seed: int) -> None:
    pages = [(file, number) for number in range(3) for file in range(3)]
    writes = [write(file, f"/{'abc'[file]}", number * PAGE, b"n" * PAGE) for file, number in pages]
    state = play(files(a=b"o" * 3 * PAGE, b=b"o" * 3 * PAGE, c=b"o" * 3 * PAGE), *writes)
    remains = list(outcomes(state, seed).take(32))
    parts = [({page for page, count in each.patches.items() if not count}, set(each.torn)) for each in remains]
    whole, last, first = {*pages}, {(file, 2) for file in range(3)}, {(file, 0) for file in range(3)}
    for wide in ((set[Page](), whole), (set[Page](), last), (set[Page](), first), (last, set[Page]()), (first, set[Page]())):
        assert wide in parts[:8], wide
    assert sum(len(lost) == len(torn) == 1 for lost, torn in parts) >= 16


def test_classes_that_were_never_tried_are_named() -> None:
    few = outcomes(six_pages())
    assert len(list(few.take(2))) == 2 and "all kept" not in few.untried_classes() and "1 lost, 1 torn" in few.untried_classes()
    list((more := outcomes(six_pages())).take(60))
    assert set(more.untried_classes()) < set(few.untried_classes()) and "1 lost, 1 torn" not in more.untried_classes()


def test_effects_too_many_to_be_counted_are_drawn_as_well() -> None:
    state = play(files(a=b""), *(write(0, "/a", number * PAGE, b"n" * PAGE) for number in range(70)))
    some = outcomes(state)
    assert some.possible is None and len(list(some.take(300))) == 300 == some.tried.total()
    appended = play(files(a=b""), *(write(0, "/a", number * 40, b"n" * 40) for number in range(60)))
    assert outcomes(appended).possible is None and 150 < len(list(outcomes(appended).take(150_000))) < 300
