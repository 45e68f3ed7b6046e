"""Hashes that do not repeat each other, and a hash table that finds every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.hashing import table
from algorithms.hashing.buckets import bucket_numbers
from algorithms.hashing.table import TABLE_SALT, DirectTable, HashTable, hash_keys, table_of
from flashsim.core.kernel import in_python
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.rows import Tuples, key_tuples
from flashsim.testing.strict_driver import oracle

KEYS = st.lists(st.one_of(st.integers(-3, 3), st.integers(NULL_KEY + 1, (1 << 63) - 1)), max_size=40)


def tuples(codes) -> Tuples:
    return key_tuples(np.array(codes, np.int64), np.arange(len(codes)))


@given(KEYS, KEYS)
def test_a_table_finds_the_pairs_of_a_dictionary(left, right):
    hashed = HashTable(tuples(left), hash_keys(tuples(left).keys, TABLE_SALT))
    found = [np.column_stack(pair) for pair in hashed.matches(tuples(right), hash_keys(tuples(right).keys, TABLE_SALT))]
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *found])
    np.testing.assert_array_equal(pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))], oracle(left, right))


@given(st.sets(st.integers(-50, 50), min_size=1), st.integers(-(1 << 62), 1 << 62), st.lists(st.integers(-70, 70), max_size=300))
def test_a_direct_table_finds_the_pairs_of_a_hash_table_in_the_same_order(left, least, right):
    r, s = tuples([least + key for key in left]), tuples([least + key for key in right])
    direct, hashed = table_of(r), HashTable(r, hash_keys(r.keys, TABLE_SALT))
    assert isinstance(direct, DirectTable) == (max(left) - min(left) < 32 * len(left))
    one, other = ([np.column_stack(pair) for pair in each.matches(s)] for each in (direct, hashed))
    assert len(one) == len(other) and all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


def test_keys_that_come_twice_or_lie_apart_are_hashed():
    assert isinstance(table_of(tuples([1, 2, 2])), HashTable) and isinstance(table_of(tuples([1, 1 << 40])), HashTable)
    assert isinstance(table_of(tuples([])), HashTable)


def test_batches_of_a_direct_table_are_full():
    r, s = tuples(np.arange(1000)), tuples(np.tile(np.arange(-1000, 1000), 150))
    batches = list(table_of(r).matches(s))
    assert [len(batch[0]) for batch in batches] == [65536, 65536, 18928]
    pairs = np.concatenate([np.column_stack(batch) for batch in batches])
    assert np.array_equal(pairs[:, 1], np.flatnonzero(s.keys >= 0)) and np.array_equal(pairs[:, 0], s.keys[pairs[:, 1]])


def test_batches_break_within_a_tuple_s_matches():
    left, right = tuples(np.zeros(1000)), tuples(np.zeros(200))
    hashes = [hash_keys(side.keys, 0) for side in (left, right)]
    batches = list(HashTable(left, hashes[0]).matches(right, hashes[1]))
    assert [len(batch[0]) for batch in batches] == [65536, 65536, 65536, 3392]
    pairs = np.concatenate([np.column_stack(batch) for batch in batches])
    assert len(np.unique(pairs, axis=0)) == 200_000


@pytest.mark.parametrize("keys", [np.arange(20_000), np.arange(20_000) << 32, -np.arange(20_000) * 1024])
def test_levels_table_and_residence_are_independent(keys):
    """Within one bucket of one level, the next level, the table's half and the upper half are all still uniform."""
    salts = [0, 1, 2, TABLE_SALT]
    for first in salts:
        hashes = hash_keys(keys, first)
        bucket = bucket_numbers(hashes, 10) == 3
        inside = keys[bucket]
        assert abs(len(inside) - 2000) < 6 * np.sqrt(2000 * 0.9)
        others = [bucket_numbers(hash_keys(inside, salt), 10) for salt in salts if salt != first]
        for numbers in [*others, bucket_numbers(hashes[bucket] >> np.uint64(32), 10)]:
            counts = np.bincount(numbers, minlength=10)
            expected = len(inside) / 10
            assert ((counts - expected) ** 2 / expected).sum() < 40  # chi-square of 9 degrees: 40 has probability 1e-5


def test_hashes_are_a_bijection_of_keys():
    keys = np.concatenate([np.arange(-5000, 5000), np.array([NULL_KEY, (1 << 63) - 1])])
    assert len(np.unique(hash_keys(keys, 7))) == len(keys)


def test_a_direct_table_looks_extreme_keys_up_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference of keys wraps there, of which NumPy would warn."""
    monkeypatch.setattr(table, "_look_up", in_python(table._look_up))
    limits, direct = np.iinfo(np.int64), table_of(tuples(range(2, 9)))
    assert isinstance(direct, DirectTable)
    ((r, s),) = direct.matches(tuples([limits.min + 1, limits.max, 5, limits.min + 3]))
    assert (r.tolist(), s.tolist()) == ([3], [2])
