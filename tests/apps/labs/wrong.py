"""Typical wrong solutions of labs, as edits of the right one, and malicious submissions."""

from __future__ import annotations

_CLOCK_ENTERS = "            self.pages[self.hand] = page\n            self.hand = (self.hand + 1) % self.size\n"
_CLOCK_ROOM = "        if len(self.pages) < self.size:\n"
_CLOCK_SWEEP = "        while self.pages[self.hand] in self.marked:\n"
_CLOCK_FULL = "            if len(self.marked) == self.size:\n                break\n"
_NEARER = "abs(cylinder - head) < abs(waiting[best] - head)"
_FARTHEST = "max(range(len(waiting)), key=lambda place: abs(waiting[place] - head))"
_ABOVE = "each for each in cylinders if each >= head"
_TWO_QUEUES = "        if self.long and len(self.short) <= self.short_room:\n            return self.long.pop(0)\n"

_FTL = "Ftl, Ftl: few moves"
_AMPLIFICATION = "len(valid) * pages / sum(pages - v for v in valid)"
_MEAN = "sum(pages / (pages - v) for v in valid) / len(valid)"
_MOVING = "        for slot, page in enumerate(self.owners[victim]):\n"
_UNMAPPED = "                self.owners[self.open][self.slot] = page\n                self.slot += 1\n"
_IN_PLACE = '        if page in self.where:\n            return [["program", *self.where[page], page]]\n'
_FEWEST = "victim = min(others, key=lambda block: self.pages - self.owners[block].count(None))"

_MISSING = "len(segments[page] - set(held))"
_CENTER = "min(centers, key=lambda page: len(({page} | partners[page]) - held))"
_TWICE = "    vars(plan)['calls'] = 1 - vars(plan).get('calls', 0)\n    return fetches if plan.calls else []\n"
_LEFT = "while centers := [page for page in partners if partners[page]]:"
_PLAN, _FEW = "plan, plan: few fetches", "plan: few fetches"

_MOVED = "                where[each] = block, len(content[block])\n"
_EQUATIONS = "in_turn, greedy, divide"

_TO_AND_FRO = "            if chunk == 0 or place > 0:\n"
_GRACE = "grace, best_buckets"
_LOOPS, _REQUESTS = "nested_loops, best_inner", "plan, plan: few pages"

_DATABASE = "Database, Database: crashes again"
_UPDATE, _COMMITTED = '["log", ["update", transaction, page, before, value]]', '["log", ["commit", transaction]]'
_COMMIT = "        ### END SOLUTION\n\n    def commit(self, transaction):\n"
_AT_ONCE = f"        return [{_UPDATE}]\n{_COMMIT}"
_LATE = (
    f"        self.late = [*vars(self).get('late', []), {_UPDATE}]\n        return []\n{_COMMIT}        return self.late + [{_COMMITTED}]\n"
)
_FORCE = f'[{_COMMITTED}, *(["page", page, value] for page, value in enumerate(self.values))]'
_ABORT, _ABORTED = '[*operations, ["log", ["abort", transaction]]]', '[["log", ["abort", transaction]], *operations]'
_REDONE, _WINNERS = (
    "for _, _, page, _, after in updates:",
    'for _, _, page, _, after in [each for each in updates if ["commit", each[1]] in log]:',
)

_TABLE, _HANDED_ON = "Aggregation", "parts, self.groups = list(self.groups.values()), {}"
_SLOWEST = 'host = max(work["size"] / rates["link"], work["host"] / rates["host_cores"])'
_SUM = _SLOWEST.replace("max(", "sum([").replace(")", "])")

#: By lab and what is wrong: what is replaced by what, the exercises that it is seen in, and the share of their points that is left.
WRONG: dict[tuple[str, str], tuple[str, str, str, float]] = {
    ("disk-scheduling", "the lowest cylinder is nearest"): (_NEARER, "cylinder < waiting[best]", "sstf", 0),
    ("disk-scheduling", "of equally near ones the last"): (") < abs(waiting[best]", ") <= abs(waiting[best]", "sstf", 0),
    ("disk-scheduling", "the cylinder in the place of its place"): ("    return best\n", "    return waiting[best]\n", "sstf", 0),
    ("disk-scheduling", "the direction is forgotten"): ("(cylinder - head) * direction >= 0", "cylinder >= head", "look", 0),
    ("disk-scheduling", "where the arm is counts as behind"): ("* direction >= 0", "* direction > 0", "look", 0),
    ("disk-scheduling", "the arm turns to the farthest"): ("ahead else range(len(waiting))", f"ahead else [{_FARTHEST}]", "look", 0),
    ("disk-scheduling", "back to the nearest below"): ("place: waiting[place])", "place: abs(waiting[place] - head))", "c_look", 0),
    ("disk-scheduling", "always up first"): ("if down <= up else", "if False else", "shortest_way", 0),
    ("disk-scheduling", "to the farther end first"): ("if down <= up else", "if down > up else", "shortest_way", 0),
    ("disk-scheduling", "requests of one cylinder are served once"): (f"sorted({_ABOVE})", f"sorted({{{_ABOVE}}})", "shortest_way", 0),
    ("replacement", "FIFO for LRU"): ("        self.pages.remove(page)\n        self.pages.append(page)\n", "        pass\n", "Lru", 0),
    ("replacement", "the page used last leaves"): ("        return self.pages.pop(0)\n", "        return self.pages.pop()\n", "Lru", 0),
    ("replacement", "what left stays in the books"): ("        return self.pages.pop(0)\n", "        return self.pages[0]\n", "Lru", 0),
    ("replacement", "a page that enters is marked"): (_CLOCK_ROOM, f"        self.marked.add(page)\n{_CLOCK_ROOM}", "Clock", 0),
    ("replacement", "the hand stays where the page entered"): (_CLOCK_ENTERS, "            self.pages[self.hand] = page\n", "Clock", 0),
    ("replacement", "marks are never taken away"): ("            self.marked.remove(self.pages[self.hand])\n", _CLOCK_FULL, "Clock", 0),
    ("replacement", "the hand begins anew each time"): (_CLOCK_SWEEP, f"        self.hand = 0\n{_CLOCK_SWEEP}", "Clock", 0),
    ("replacement", "no ghosts"): ("[*self.ghosts, page][-self.ghosts_room :]", "[]", "Best", 0),
    ("replacement", "the long queue first"): (_TWO_QUEUES, "        if self.long:\n            return self.long.pop(0)\n", "Best", 0),
    ("translation-layer", "the fullest block is the victim"): ("valid[place] < valid[best]", "valid[place] > valid[best]", "greedy", 0),
    ("translation-layer", "among equals the last"): ("if valid[place] < valid[best]", "if valid[place] <= valid[best]", "greedy", 0),
    ("translation-layer", "ages are forgotten"): ("(pages - v) * a / (2 * v)", "(pages - v) / (2 * v)", "cost_benefit", 0),
    ("translation-layer", "costs as of disks"): ("(pages - v) * a / (2 * v)", "(pages - v) * a / (pages + v)", "cost_benefit", 0),
    ("translation-layer", "moves alone are counted"): ("len(valid) * pages / sum", "sum(valid) / sum", "amplification", 0),
    ("translation-layer", "the mean of ratios"): (_AMPLIFICATION, _MEAN, "amplification", 0),
    ("translation-layer", "erases before it moves"): (_MOVING, f'        operations.append(["erase", victim])\n{_MOVING}', _FTL, 0),
    ("translation-layer", "the map forgets what moved"): ("                self.put(page)\n", _UNMAPPED, _FTL, 0),
    ("translation-layer", "overwrites in place"): ("        operations = []\n", f"{_IN_PLACE}        operations = []\n", _FTL, 0),
    ("translation-layer", "victims in turn"): (_FEWEST, "victim = (self.open + 1) % self.blocks", "Ftl: few moves", 0),
    ("page-fetching", "a fetch meets a pair a frame"): ("min(fetches, frames - 1)", "min(fetches, frames)", "lower_bound", 0),
    ("page-fetching", "the smaller bound of both"): ("return max(fetches, ", "return min(fetches, ", "lower_bound", 0),
    ("page-fetching", "first fetches meet as many as later ones"): ("min(fetches, frames - 1)", "frames - 1", "lower_bound", 0),
    ("page-fetching", "a segment without its own page"): (_MISSING, "len(segments[page] - {page, *held})", "nearest", 0),
    ("page-fetching", "pages in memory count as missing"): (_MISSING, "len(segments[page])", "nearest", 0),
    ("page-fetching", "pages of R alone"): ("        segments.setdefault(s, {s}).add(r)\n", "", "nearest", 0),
    ("page-fetching", "the pairs in their order"): (_CENTER, "centers[0]", _FEW, 0),
    ("page-fetching", "the page with most pairs first"): (_CENTER, "max(centers, key=lambda page: len(partners[page]))", _FEW, 0),
    ("page-fetching", "one page too many"): ("if len(held) == frames:", "if len(held) > frames:", _PLAN, 0),
    ("page-fetching", "pages are fetched again"): ("        if page in held:\n            return\n", "", _PLAN, 0),
    ("page-fetching", "pairs are given up"): (_LEFT, "for centers in [list(partners)] * 9:", _PLAN, 0),
    ("page-fetching", "another plan when it is called again"): ("    return fetches\n", _TWICE, _PLAN, 0),
    ("page-fetching", "the page with most pairs left leaves"): ("leaves = min(", "leaves = max(", _FEW, 0),
    ("write-amplification", "valid pages are thrown away"): ("where[each] == (block, slot)]", "None]", "programs", 0),
    ("write-amplification", "what moved is not found again"): (_MOVED, "", "programs", 0),
    ("write-amplification", "moves are not counted"): ("            count += len(valid)\n", "", "programs", 0),
    ("write-amplification", "the root without writes"): ("v, before = 0.0, -1.0", "v, before = 1 - 1e-15, -1.0", _EQUATIONS, 0),
    ("write-amplification", "the share of valid pages itself"): ("    return 1 / (1 - v)\n", "    return v\n", _EQUATIONS, 0),
    ("write-amplification", "a few steps alone"): ("while v - before > 1e-12:", "for _ in range(5):", _EQUATIONS, 0),
    ("write-amplification", "the factor is left out"): ("in_turn(k * alpha) / k", "in_turn(k * alpha)", "greedy", 0),
    ("write-amplification", "a whole page a block"): ("1 + 1 / (2 * pages)", "1 + 1 / pages", "greedy", 0),
    ("write-amplification", "hot pages are written as often as others"): ("-(writes / data) * alpha", "-alpha", "hot_cold", 0),
    ("write-amplification", "a turn does not grow with moves"): ("alpha / before)\n        a", "alpha)\n        a", "hot_cold", 0),
    ("write-amplification", "spare pages are halved"): ("for step in range(1, 200):", "for step in [100]:", "divide", 0),
    ("write-amplification", "spare pages as the data"): ("for step in range(1, 200):", "for step in [200 * data]:", "divide", 0),
    ("write-amplification", "pools count alike"): ("writes * hot + (1 - writes) * cold", "(hot + cold) / 2", "divide", 0),
    ("join-buffers", "chunks are rounded down"): ("chunks = -(-r // (memory - inner))", "chunks = r // (memory - inner)", _LOOPS, 0),
    ("join-buffers", "chunks take all of memory"): ("chunks = -(-r // (memory - inner))", "chunks = -(-r // memory)", _LOOPS, 0),
    ("join-buffers", "memory in halves"): ("return min(range(1, memory), key=cost)", "return memory // 2", "best_inner", 0),
    ("join-buffers", "a page for S"): ("return min(range(1, memory), key=cost)", "return 1", "best_inner", 0),
    ("join-buffers", "requests cost nothing"): ("pages + latency * requests", "pages", "best_inner", 0),
    ("join-buffers", "S is read forwards alone"): (_TO_AND_FRO, "            if True:\n", "plan: few pages", 0),
    ("join-buffers", "the part in memory is passed over"): ("        blocks.reverse()\n", "", _REQUESTS, 0),
    ("join-buffers", "requests go past the end"): ("min(inner, s - first)", "inner", _REQUESTS, 0),
    ("join-buffers", "the last chunk is forgotten"): ("range(0, r, outer)", "range(0, r - outer, outer)", _REQUESTS, 0),
    ("join-buffers", "a key has one row"): ("table.setdefault(key, []).append(place)", "table[key] = [place]", "match", 0),
    ("join-buffers", "NULL equals NULL"): ("if key is not None:", "if True:", "match", 0),
    ("join-buffers", "an output buffer a bucket alone"): ("memory // (buckets + 1)", "memory // buckets", _GRACE, 0),
    ("join-buffers", "buckets are read once"): ("3 * (r + s)", "2 * (r + s)", "grace", 0),
    ("join-buffers", "a bucket takes no request of its own"): ("max(buckets, -(-s // second_input))", "-(-s // second_input)", "grace", 0),
    ("join-buffers", "as few buckets as can be"): ("return min(possible, key", "return min(possible[:1], key", "best_buckets", 0),
    ("recovery", "an abort is no end"): ('if record[0] != "update"}', 'if record[0] == "commit"}', "unfinished, recovered", 0),
    ("recovery", "in another order"): ("return sorted(begun - ended)", "return sorted(begun - ended)[::-1]", "unfinished", 0),
    ("recovery", "committed work is redone alone"): (_REDONE, _WINNERS, "recovered", 0),
    ("recovery", "undo from the first to the last"): ("in reversed(updates)", "in updates", "recovered", 0),
    ("recovery", "nothing is redone"): ("        values[page] = after\n    for", "        pass\n    for", "recovered", 0),
    ("recovery", "updates are not logged"): (f"return [{_UPDATE}]", "return []", _DATABASE, 0),
    ("recovery", "updates are logged with the commit"): (_AT_ONCE, _LATE, _DATABASE, 0),
    ("recovery", "the commit is not logged"): (f"return [{_COMMITTED}]", "return []", _DATABASE, 0),
    ("recovery", "the commit writes pages"): (f"return [{_COMMITTED}]", f"return {_FORCE}", _DATABASE, 0),
    ("recovery", "an abort logs no updates"): ("            operations.append(", "            str(", _DATABASE, 0),
    ("recovery", "an abort is logged first"): (f"return {_ABORT}", f"return {_ABORTED}", _DATABASE, 0),
    ("recovery", "an abort from the first to the last"): ("in reversed(self.active.pop(", "in list(self.active.pop(", _DATABASE, 0),
    ("recovery", "an evicted page is not written"): ('return [["page", page, self.values[page]]]', "return []", _DATABASE, 0),
    ("recovery", "what is undone is not logged"): ("operations += self.abort", "self.abort", "Database: crashes again", 0),
    ("smart-ssd", "the table has no bound"): ("if len(self.groups) == self.room:", "if False:", _TABLE, 0),
    ("smart-ssd", "a group too many"): ("len(self.groups) == self.room", "len(self.groups) > self.room", _TABLE, 0),
    ("smart-ssd", "each row is a part"): ("if len(self.groups) == self.room:", "if True:", _TABLE, 0),
    ("smart-ssd", "parts are handed on twice"): (_HANDED_ON, "parts = list(self.groups.values())", _TABLE, 0),
    ("smart-ssd", "a full table is thrown away"): ("parts += self.finish()", "self.finish()", _TABLE, 0),
    ("smart-ssd", "NULL counts"): ("            if value is not None:\n", "            if value := value or 1:\n", _TABLE, 0),
    ("smart-ssd", "the sum of nothing is 0"): ("self.groups[key] = [key, 0, None]", "self.groups[key] = [key, 0, 0]", _TABLE, 0),
    ("smart-ssd", "the last part of a group stands for all"): ("        group[1] += count\n", "        group[1] = count\n", "whole", 0),
    ("smart-ssd", "groups in the order of their parts"): ("in order]", "in groups]", "whole", 0),
    ("smart-ssd", "an average over parts"): ("/ groups[key][1] if", "/ sum(part[0] == key for part in parts) if", "whole", 0),
    ("smart-ssd", "a key sets two bits"): ("range(3)]", "range(2)]", "bloom, passes", 0),
    ("smart-ssd", "one bit is enough"): ("bits_set.issuperset(places_of(", "bits_set.intersection(places_of(", "passes", 0),
    ("smart-ssd", "NULL is forgotten"): ("if row[0] is not None and bits_set", "if bits_set", "passes", 0),
    ("smart-ssd", "parts of a pipeline add up"): (_SLOWEST, _SUM, "times, break_even", 0),
    ("smart-ssd", "always a break-even"): ("        return None\n", "        pass\n", "break_even", 0),
    ("smart-ssd", "the result's bytes are left out"): ("share * rows * result}", "0}", "break_even", 0),
}  # fmt: skip

_CALL = "reached for what a submission must not (a system call)"
#: By what is tried: the attack, and what it is named.
MALICIOUS: dict[str, tuple[str, str]] = {
    "an endless loop": ("while True:\n    pass", "of processor time"),
    "all memory": ("every = []\nwhile True:\n    every.append(bytearray(1 << 24))", "reached for memory"),
    "writes a file": ("open('loot', 'w').write('x')", "reached for files (open loot)"),
    "reads a file": ("open('/etc/passwd').read()", "reached for files (open /etc/passwd)"),
    "reads the grader's memory": ("import os\nopen(f'/proc/{os.getppid()}/mem', 'rb')", "reached for files"),
    "reads the grader's command line": ("import os\nopen(f'/proc/{os.getppid()}/cmdline')", "reached for files"),
    "lists folders": ("import os\nos.listdir('/')", "reached for files"),
    "opens by a descriptor": ("import os\nos.open('/etc', os.O_RDONLY)", "reached for files"),
    "the network": ("import socket\nsocket.create_connection(('192.0.2.1', 80))", "reached for network"),
    "another program": ("import subprocess\nsubprocess.run(['true'])", "reached for other processes"),
    "the shell": ("import os\nos.system('true')", "reached for other processes"),
    "a child": ("import os\nos.fork()", "reached for other processes"),
    "kills the grader": ("import os\nos.kill(os.getppid(), 9)", "reached for other processes"),
    "foreign code": ("import ctypes\nctypes.CDLL(None)", "reached for foreign code"),
    "imports the solution": ("import flashsim.apps.labs.assignments", "reached for the solutions (import flashsim"),
    "patches the checker": ("import gc\n[each.clear() for each in gc.get_objects() if isinstance(each, dict)]", "reached for the checker"),
    "raises its limits": ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "reached for its own limits"),
    "ends the process": ("import os\nos._exit(0)", "its process ended"),
    "answers a number without end": ("return 10 ** 400", "a number of 401 digits"),
    "answers for ever": ("return list(range(10**6))", "answer is longer"),
    "clears the tables of names": (
        "import __main__\n__main__.REFUSED.clear()\n__main__._READS = ()\nimport os\nopen(f'/proc/{os.getppid()}/cmdline')",
        "reached for files (open /proc",
    ),
    "patches the names of paths": (
        "import os\nos.path.realpath = lambda path, **rest: os.__file__\nopen(f'/proc/{os.getppid()}/cmdline')",
        "reached for files (open /proc",
    ),
    "reads installed packages": ("import os\nopen(os.path.dirname(os.__file__) + '/site-packages/pip/__init__.py')", "reached for files"),
    "a program by way of C": ("import _posixsubprocess\n_posixsubprocess.fork_exec()", "reached for other processes (import _posix"),
    "reads a file by way of C": ("import readline\nreadline.read_history_file('/etc/passwd')", "reached for files (import readline)"),
    "another interpreter": ("import _xxsubinterpreters\n_xxsubinterpreters.create()\nreturn 'made'", "is 0, but"),
    "shared memory": ("import _posixshmem\nreturn _posixshmem.shm_open('/loot', 66, mode=384)", "is 0, but"),
    "signals to the grader": ("import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(os.getppid()), 15)", _CALL),
    "the grader's priority": ("import os\nos.setpriority(os.PRIO_PROCESS, os.getppid(), 19)", _CALL),
    "the grader's processors": ("import os\nos.sched_setaffinity(os.getppid(), {0})", _CALL),
    "a named pipe": ("import os\nos.mkfifo('loot')", _CALL),
    "a file without opening it": ("import os\nos.mknod('loot')", _CALL),
    "a thread": ("import threading\nthreading.Thread(target=print).start()", "reached for"),
    "a pipe": ("import os\nos.pipe()", _CALL),
    "looks at a file": ("import os\nreturn os.stat('/etc/passwd').st_size", "is 0, but"),
    "follows a link": ("import os\nreturn os.readlink(f'/proc/{os.getppid()}/exe')", "is 0, but"),
    "attributes of a file": ("import os\nos.listxattr('/etc')", _CALL),
    "closes its pipes and sleeps": ("import os, time\nos.closerange(0, 100)\ntime.sleep(1e9)", "closed the pipe of its answers"),
    "sleeps": ("import time\ntime.sleep(1e9)", "s that it is waited for"),
    "says a number": (r"import os; os.write(4, b'5\n')", "its answer is none"),
    "says nothing": (r"import os; os.write(4, b'{}\n')", "its answer is none"),
    "says a word": (r"import os; os.write(4, b'hello\n')", "its answer is not JSON"),
    "says bytes": (r"import os; os.write(4, b'\xff\xfe\n')", "its answer is not JSON"),
    "says a breach of another kind": (r"""import os; os.write(4, b'{"breach": 1, "what": []}\n')""", "its answer is none"),
    "nests its answer": (r"""import os; os.write(4, b'{"answer":' + b'[' * 20000 + b']' * 20000 + b'}\n')""", "nested too deeply"),
    "half a character": (r"return '\ud800'", r"is \ud800, but"),
    "forges lines": (r"return 'x\n    sstf: 20 of 20\n\x1b[31m'", r"is x\n    sstf: 20 of 20\n\x1b[31m, but"),
}
