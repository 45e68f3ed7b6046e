"""LFU with aging: the page with the fewest references since it entered leaves, and all counts are halved when they grow old.

Counts and their groups are those of Shah, Mitra and Matani (*An O(1) algorithm for implementing the LFU cache eviction scheme*, 2010),
which leaves open which of equals leaves: here the one that was referenced longest ago.  Here all groups lie in one list in ascending order,
and a group is known by its newest page.  Counts age as in Robinson and Devarakonda (*Data Cache Management Using Frequency-Based
Replacement*, SIGMETRICS 1990): when they are above an ``average`` of all pages in the pool, each is halved, an odd one rounded up.  Which
average suits is left open; 0 is never, which is plain LFU.  Of pages whose counts become equal by halving, those with the lower ones leave
first.
"""

from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "LFU, least frequently used, with aging (Robinson and Devarakonda, SIGMETRICS 1990)"
PARAMETERS = {"average": replacement.Parameter(100, 0, 1_000_000_000, "references a page above which all counts are halved; 0: never")}
COLUMNS = 1
WORDS = 3
#: A page's group; of each group its count, its newest page (of a free one the next free group, or 0) and how many pages it has.
_RING, _GROUP = 0, replacement.OWN
_COUNT, _NEWEST, _PAGES, _GROUP_WORDS = range(4)
#: The sum of all counts, the groups that were ever used, and the first of those that are free again.
_SUM, _GROUPS, _FREE = range(replacement.OWN_NUMBER, replacement.OWN_NUMBER + 3)


class Plain(replacement.PlainPolicy):
    """The count of each page, and the pages of each count, those first that came to it first."""

    def __init__(self, pool: replacement.PolicyPool, average: int) -> None:
        super().__init__(pool)
        self.average, self.total = average, 0
        self.count: dict[int, int] = {}
        self.pages: dict[int, dict[int, None]] = {}

    def hit(self, page: int) -> None:
        count = self.count[page] + 1
        self.forget(page)
        self._add(page, count)
        if 0 < self.average * len(self.count) < self.total:
            groups, self.pages, self.total = self.pages, {}, 0
            for count in sorted(groups):
                for each in groups[count]:
                    self._add(each, (count + 1) // 2)

    def enter(self, page: int) -> None:
        self._add(page, 1)

    def victim(self, page: int) -> int:
        return self.give_up(self.first(*(self.pages[count] for count in sorted(self.pages))))

    def forget(self, page: int) -> None:
        count = self.count.pop(page)
        self.total -= count
        del self.pages[count][page]
        if not self.pages[count]:
            del self.pages[count]

    def _add(self, page: int, count: int) -> None:
        self.count[page] = count
        self.total += count
        self.pages.setdefault(count, {})[page] = None


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    pages, words, numbers = pool.pages, pool.words, pool.numbers
    group = pages[page, _GROUP]
    count, behind = words[_at(group) + _COUNT], words[_at(group) + _NEWEST]
    if behind == page:
        behind = pages[page, replacement.OLDER]
    _remove(pool, page)
    _add(pool, page, count + 1, behind)
    if 0 < numbers[replacement.FIRST_PARAMETER] * numbers[replacement.USED] < numbers[_SUM]:
        _halve(pool)


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    _add(pool, page, 1, _RING)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    leaving = replacement.oldest(pool, _RING)
    _remove(pool, leaving)
    return leaving


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    _remove(pool, page)


@inlined_kernel
def _at(group: int) -> int:
    """Begin of a group's words; groups are numbered from 1."""
    return int(group) * _GROUP_WORDS


@inlined_kernel
def _add(pool: replacement.PoolState, page: int, count: int, behind: int) -> None:
    """Put a page into the group of its count, which comes next behind a page or is not there yet."""
    pages, words, numbers = pool.pages, pool.words, pool.numbers
    after = pages[behind, replacement.NEWER]
    numbers[_SUM] += count
    if after >= replacement.FIRST_PAGE and words[_at(pages[after, _GROUP]) + _COUNT] == count:
        group = pages[after, _GROUP]
        behind = words[_at(group) + _NEWEST]
        after = pages[behind, replacement.NEWER]
    else:
        group = numbers[_FREE]
        if group:
            numbers[_FREE] = words[_at(group) + _NEWEST]
        else:
            numbers[_GROUPS] += 1
            group = numbers[_GROUPS]
        words[_at(group) + _COUNT], words[_at(group) + _PAGES] = count, 0
    words[_at(group) + _NEWEST], pages[page, _GROUP] = page, group
    words[_at(group) + _PAGES] += 1
    pages[page, replacement.OLDER], pages[page, replacement.NEWER] = behind, after
    pages[behind, replacement.NEWER] = pages[after, replacement.OLDER] = page


@inlined_kernel
def _free(pool: replacement.PoolState, group: int) -> None:
    pool.words[_at(group) + _NEWEST] = pool.numbers[_FREE]
    pool.numbers[_FREE] = group


@inlined_kernel
def _remove(pool: replacement.PoolState, page: int) -> None:
    pages, words = pool.pages, pool.words
    group = pages[page, _GROUP]
    at = _at(group)
    pool.numbers[_SUM] -= words[at + _COUNT]
    words[at + _PAGES] -= 1
    if words[at + _NEWEST] == page:
        words[at + _NEWEST] = pages[page, replacement.OLDER]
    if words[at + _PAGES] == 0:
        _free(pool, group)
    replacement.take_out(pool, page)


@lean_kernel
def _halve(pool: replacement.PoolState) -> None:
    pages, words = pool.pages, pool.words
    total, before, page = 0, 0, pages[_RING, replacement.NEWER]
    while page >= replacement.FIRST_PAGE:
        group = pages[page, _GROUP]
        at = _at(group)
        count, newest, members = (words[at + _COUNT] + 1) // 2, words[at + _NEWEST], words[at + _PAGES]
        total += count * members
        if before > 0 and words[_at(before) + _COUNT] == count:
            each = newest
            for _ in range(members):
                pages[each, _GROUP] = before
                each = pages[each, replacement.OLDER]
            words[_at(before) + _NEWEST] = newest
            words[_at(before) + _PAGES] += members
            _free(pool, group)
        else:
            words[at + _COUNT] = count
            before = group
        page = pages[newest, replacement.NEWER]
    pool.numbers[_SUM] = total
