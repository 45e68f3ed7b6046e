"""Cheats of labs, one of each exercise: what earns marks by the numbers of an instance, by memory, or by a guess, and must earn none."""

from __future__ import annotations

#: A database that logs nothing, and recovers what a variable of its module remembers of the one that was called last.
_REMEMBERS = """
latest = None

class Database:
    def __init__(self, pages):
        self.values, self.undo = [0] * pages, {}
    def read(self, page):
        global latest
        latest = self
        return self.values[page]
    def write(self, transaction, page, value):
        self.read(page)
        self.undo.setdefault(transaction, []).append((page, self.values[page]))
        self.values[page] = value
        return []
    def commit(self, transaction):
        self.undo.pop(transaction, None)
        return []
    def abort(self, transaction):
        for page, before in reversed(self.undo.pop(transaction, [])):
            self.values[page] = before
        return []
    def evict(self, page):
        return [["page", page, self.read(page)]]
    def recover(self, log, pages):
        if latest:
            self.values, self.undo = list(latest.values), {name: list(each) for name, each in latest.undo.items()}
        for transaction in list(self.undo):
            self.abort(transaction)
        return [["page", page, value] for page, value in enumerate(self.values)]
"""

#: A layer whose victims come in turn; it keeps pages with small numbers apart, which were the popular ones.
_SMALL_IS_HOT = """
class Ftl:
    def __init__(self, logical, blocks, pages):
        self.hot, self.pages, self.where = logical // 5, pages, {}
        self.content = [[] for _ in range(blocks)]
        self.order, self.free, self.open = [], list(range(blocks)), {}
    def read(self, page):
        return self.where[page]
    def put(self, page, operation):
        kind = page < self.hot
        if kind not in self.open or len(self.content[self.open[kind]]) == self.pages:
            self.open[kind] = self.free.pop(0)
            self.order.append(self.open[kind])
        block = self.open[kind]
        self.operations.append([*operation, block, len(self.content[block])] + [page] * (operation == ["program"]))
        self.where[page] = [block, len(self.content[block])]
        self.content[block].append(page)
    def write(self, page):
        self.operations = []
        self.put(page, ["program"])
        while len(self.free) < 2:
            closed = [block for block in self.order if block not in self.open.values()]
            live = lambda block: sum(self.where[each] == [block, slot] for slot, each in enumerate(self.content[block]))
            victim = next((block for block in closed if live(block) < self.pages), closed[0])
            self.order.remove(victim)
            for slot, each in enumerate(self.content[victim]):
                if self.where[each] == [victim, slot]:
                    self.put(each, ["move", victim, slot])
            self.operations.append(["erase", victim])
            self.content[victim] = []
            self.free.append(victim)
        return self.operations
"""

#: A table that keeps all groups, and hands on parts of nothing so that they seem to have left.
KEEPS_ALL = """
class Aggregation:
    def __init__(self, room):
        self.room, self.groups, self.seeming = room, {}, set()
    def step(self, rows):
        for key, value in rows:
            _, count, total = self.groups.get(key, [key, 0, None])
            self.groups[key] = [key, count, total] if value is None else [key, count + 1, (total or 0) + value]
            self.seeming.add(key)
        leaving = sorted(self.seeming, key=str)[: max(0, len(self.seeming) - self.room)]
        self.seeming.difference_update(leaving)
        return [[key, 0, None] for key in leaving]
    def finish(self):
        return list(self.groups.values())
"""

_BY_NUMBER = """
class {name}:
    def __init__(self, frames): self.pages = set()
    def hit(self, page): pass
    def enter(self, page): self.pages.add(page)
    def victim(self):
        page = max(self.pages)
        self.pages.remove(page)
        return page
"""

#: By lab and exercise.
CHEATS = {
    ("disk-scheduling", "sstf"): "def sstf(waiting, head): return waiting.index(head) if head in waiting else 0",
    ("disk-scheduling", "look"): "def look(waiting, head, direction): return waiting.index(head) if head in waiting else 0",
    ("disk-scheduling", "c_look"): "def c_look(waiting, head): return waiting.index(min(waiting))",
    ("disk-scheduling", "shortest_way"): (  # the last two were the ends
        "def shortest_way(cylinders, head):\n"
        "    first, last = sorted(cylinders[-2:], key=lambda end: abs(end - head))\n"
        "    return [first] + sorted(cylinders[:-2], reverse=first > head) + [last]"
    ),
    ("join-buffers", "nested_loops"): "def nested_loops(r, s, memory, inner): return [r // inner * (s // inner), r + s]",
    ("join-buffers", "best_inner"): "def best_inner(r, s, memory, latency): return memory // 2 if latency > 1 else 1",
    ("join-buffers", "plan"): "def plan(r, s, memory, inner): return [['R', 0, r], ['S', 0, s]]",
    ("join-buffers", "plan: few pages"): "def plan(r, s, memory, inner): return [['R', 0, memory - inner], ['S', 0, inner]]",
    (
        "join-buffers",
        "match",
    ): "def match(build, probe): return [[build.index(each), place] for place, each in enumerate(probe) if each in build]",
    ("join-buffers", "grace"): "def grace(r, s, memory, buckets): return [3 * buckets, 3 * (r + s)]",
    ("join-buffers", "best_buckets"): "def best_buckets(r, s, memory, latency): return -(-r // (memory - 1))",
    ("page-fetching", "lower_bound"): (  # frames told which of the bounds it is
        "def lower_bound(pairs, frames):\n"
        "    if frames > 6:\n        return len({page for pair in pairs for page in pair})\n"
        "    met = (frames - 1) * frames // 2\n    return frames + max(0, -(-(len(pairs) - met) // (frames - 1)))"
    ),
    ("page-fetching", "nearest"): "def nearest(pairs, held): return held[0]",
    (
        "page-fetching",
        "plan",
    ): "def plan(pairs, frames): return [[page, None] for page in sorted({page for pair in pairs for page in pair})]",
    ("page-fetching", "plan: few fetches"): (
        "def plan(pairs, frames):\n    fetches, held = [], []\n    for pair in pairs:\n        for page in pair:\n"
        "            if page not in held:\n"
        "                leaves = next(each for each in held if each not in pair) if len(held) == frames else None\n"
        "                held = [each for each in held if each != leaves] + [page]\n                fetches.append([page, leaves])\n"
        "    return fetches"
    ),
    ("recovery", "unfinished"): (  # the last to begin had the largest numbers
        "def unfinished(log):\n    ended = [record[1] for record in log if record[0] != 'update']\n"
        "    return sorted({record[1] for record in log if record[1] > max(ended, default=0)})"
    ),
    ("recovery", "recovered"): (  # the largest value was the newest
        "def recovered(log, pages):\n    winners = {record[1] for record in log if record[0] == 'commit'}\n"
        "    return [max([0, *(each[4] for each in log if each[1] in winners and each[2:3] == [page])]) for page in range(len(pages))]"
    ),
    ("recovery", "Database"): _REMEMBERS,
    ("recovery", "Database: crashes again"): _REMEMBERS,
    ("replacement", "Lru"): _BY_NUMBER.format(name="Lru"),
    ("replacement", "Clock"): _BY_NUMBER.format(name="Clock"),
    ("replacement", "Best"): _BY_NUMBER.format(name="Best"),
    ("smart-ssd", "Aggregation"): (
        "class Aggregation:\n    def __init__(self, room): pass\n    def step(self, rows): return [[1, 0, None]] * (len(rows) == 1)\n"
        "    def finish(self): return []"
    ),
    ("smart-ssd", "whole"): "def whole(parts): return [[1, 0, None, None]]",
    ("smart-ssd", "bloom"): "def bloom(keys, bits): return sorted({key % bits for key in keys})",
    ("smart-ssd", "passes"): "def passes(rows, places, bits): return rows[:4] + rows[-3:-1]",  # the filter's own keys stood there
    ("smart-ssd", "times"): "def times(rates, work): return [work['size'] / rates['link'], work['size'] / rates['bus']]",
    ("smart-ssd", "break_even"): "def break_even(rates, work, rows, match, result): return None",
    ("translation-layer", "greedy"): "def greedy(valid, age, pages): return 0",
    ("translation-layer", "cost_benefit"): "def cost_benefit(valid, age, pages): return sorted(range(10), key=lambda each: age[each])[-2]",
    ("translation-layer", "amplification"): "def amplification(valid, pages): return 2.0",
    ("translation-layer", "Ftl"): (
        "class Ftl:\n    def __init__(self, *rest): self.slot = -1\n    def read(self, page): return [0, self.slot]\n"
        "    def write(self, page):\n        self.slot += 1\n        return [['program', 0, self.slot, page]]"
    ),
    ("translation-layer", "Ftl: few moves"): _SMALL_IS_HOT,
    ("write-amplification", "programs"): "def programs(writes, blocks, pages): return len(writes)",
    ("write-amplification", "in_turn"): "def in_turn(alpha): return 1 + 0.5 / (alpha - 1)",
    ("write-amplification", "greedy"): "def greedy(alpha, pages): return 1 + 0.3 / (alpha - 1)",
    ("write-amplification", "hot_cold"): "def hot_cold(alpha, writes, data): return 1 + 0.8 / (alpha - 1)",
    ("write-amplification", "divide"): "def divide(alpha, writes, data): return [0.47, 1.41]",
}
