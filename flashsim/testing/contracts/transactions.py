"""The contract of workloads of transactions: a seed makes them, in batches of any size, within the pages that they say."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from flashsim.core.transactions import COUNT, CREATES, FIRST, MARKS, SCANS, WRITES, Transactions
from flashsim.testing.contract import Contract
from flashsim.testing.contracts.references import check_declared, needed
from traces.transactions.base import WORKLOADS, TransactionWorkload, scaled, workload

#: Transactions that are looked at.
_SOME = 5000


def first(batches: Iterator[Transactions], transactions: int = _SOME) -> Transactions:
    """So many transactions in one batch."""
    taken, count = list[Transactions](), 0
    for batch in batches:
        taken.append(batch)
        count += len(batch.ends)
        if count >= transactions:
            break
    begins = np.cumsum([0, *(len(batch.references) for batch in taken)])
    ends = np.concatenate([batch.ends + begin for batch, begin in zip(taken, begins, strict=False)])[:transactions]
    references = np.concatenate([batch.references for batch in taken])[: ends[-1]]
    return Transactions(references, ends, np.concatenate([batch.kinds for batch in taken])[:transactions])


def _equal(some: Transactions, others: Transactions) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


class TransactionContract(Contract):
    """Properties of a workload of transactions (`traces.transactions.base`)."""

    FAMILY = WORKLOADS

    @property
    def values(self) -> str:
        """Parameters of a small one."""
        return needed(WORKLOADS.load(self.name).Workload)

    def stream(self, more: str = "") -> TransactionWorkload:
        made = workload(f"{self.name}:{','.join(each for each in (self.values, more) if each)}")
        assert isinstance(made, TransactionWorkload), "Workload is not derived from TransactionWorkload"
        return made

    def test_a_seed_makes_the_same_in_batches_of_any_size(self) -> None:
        usual = first(self.stream().batches())
        for more in ("batch=7", "seed=0"):
            assert _equal(first(self.stream(more).batches()), usual), f"other transactions with {more}"
        assert all(len(batch.ends) <= 7 for batch in islice(self.stream("batch=7").batches(), 100)), "batches are larger than asked for"
        assert not np.array_equal(first(self.stream("seed=1").batches()).references, usual.references), (
            "another seed makes the same references"
        )

    def test_references_are_within_the_database_and_transactions_in_order(self) -> None:
        stream = self.stream()
        made = first(stream.batches())
        pages, counts, marks = (made.references[:, each] for each in (FIRST, COUNT, MARKS))
        assert all(each.dtype == np.int64 for each in made), f"they are of types {[str(each.dtype) for each in made]}"
        assert pages.min() >= 0 and (pages + counts).max() <= stream.pages, f"pages {pages.min()} to {pages.max()} of {stream.pages}"
        assert marks.min() >= 0 and marks.max() <= WRITES | SCANS | CREATES, f"marks {marks.min()} to {marks.max()}"
        assert (counts[marks & SCANS == 0] == 1).all() and counts.min() >= 1, "a reference that is no scan is to one page"
        assert (np.diff(made.ends, prepend=0) > 0).all() and made.ends[-1] == len(made.references), "a transaction has no references"
        assert set(made.kinds.tolist()) <= set(range(len(stream.kinds))), f"kinds {set(made.kinds.tolist())} of {stream.kinds}"
        if metric := stream.METRIC:
            share = (made.kinds == stream.kinds.index(metric.kind)).mean()
            assert abs(share - metric.share) < 4 * (metric.share / _SOME) ** 0.5, f"{share:.1%} of all are {metric.kind}"
            assert metric.of(120, metric.period // 2) == 240

    def test_every_parameter_is_declared_and_checked(self) -> None:
        member = WORKLOADS.load(self.name)
        assert member.TITLE, "it has no title"
        check_declared(member.Workload, self.values, lambda values: workload(f"{self.name}:{values}"))

    def test_a_workload_is_scaled(self) -> None:
        stream = self.stream()
        assert stream.SCALES and scaled(stream, 1) == stream, "SCALES is empty, or scaling by 1 changes it"
        pages = scaled(stream, 8).pages
        assert abs(pages - 8 * stream.pages) <= 0.8 * stream.pages, f"eight times {stream.pages} pages are {pages}"
