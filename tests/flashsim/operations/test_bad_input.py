"""Bad input, each one clear line on stderr and exit code 2, with nothing left behind."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flashsim.core.compiling import Compilation
from tests.commands import SMALL_JOIN, Run

PRESETS = Path(__file__).parents[3] / "flashsim" / "device" / "presets"


def changed(**options: str) -> str:
    """The small join with some options changed; `algorithm` is the argument."""
    words = SMALL_JOIN.split()
    words[1] = options.pop("algorithm", words[1])
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if option in words:
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
    return " ".join(words)


#: Refused only where the drive stands ready, which may have to be compiled first.
TOO_SMALL = changed(device="small.toml")
SMART = "--table n=tpch:nation@0.01 --device samsung-smart-400gb"
BAD = {
    "pool restart tpc-c:warehouses=2 --memory 20MB --ssd 140MB --time 0s": "time: 0 s, but it must be more than 0",
    f'smart run "SELECT n_name FROM n" {SMART} --then partitioning:by=n_name,parts=0': "flashsim: parts: 0, but it must be from 1 to",
    f'smart run "SELECT missing FROM n" {SMART}': "column: 'missing' is unknown",
    f'smart run "DELETE FROM n" {SMART}': "query: one SELECT is needed; supported: SELECT of columns",
    f'smart run "SELECT 1 FROM n" {SMART} --where inside': "--where: 'inside', but it must be one of auto, host, drive",
    'smart run "SELECT 1 FROM n" --table nation --device samsung-smart-400gb': "--table: 'nation', but it must read NAME=SOURCE",
    'smart run "SELECT 1 FROM n" --table n=tpch:nation@0.01 --device ocz-core-60gb --where drive': "ocz-core-60gb has no [inside]",
    f'smart run "SELECT 1 FROM n" {SMART} --partition n_name': "--partition: 'n_name', but it must read NAME=COLUMN",
    f'smart run "SELECT 1 FROM n" {SMART} --partition n=name': "column of n: 'name' is unknown; did you mean n_name",
    f'smart run "SELECT 1 FROM n" {SMART} --partition m=n_name': "table: 'm' is unknown",
    f'smart run "SELECT 1 FROM n" {SMART} --partition n=n_name --partition n=n_regionkey': "n is given twice",
    'smart run "SELECT 1 FROM n" --table n=tpch:orders@100000 --device samsung-smart-400gb': "150,000,000,000 rows of 104 B take",
    changed(device="ocz-core-60bg"): "did you mean ocz-core-60gb",
    changed(algorithm="hash-hybrid"): "did you mean",
    "device list --json --force": "--json: '--force', but its value is missing; a file of that name is ./--force",
    "trace info a.csv --out-dir --force": "--out-dir: '--force', but its value is missing",
    "device serve ocz-core-60gb --socket x --content --force": "--content: '--force', but its value is missing",
    "device bench ocz-core-60gb --count 100000000000000000000": "--count: 100000000000000000000, but it must be at most 2,147,483,647",
    changed(algorithm="mine.py"): "mine.py",
    changed(memory="1000"): "--memory: '1000'",
    changed(memory="4KiB"): "memory: 4 KiB",
    changed(algorithm="grace-hash", memory="40KiB"): "sqrt(F |R|)",
    changed(algorithm="sort-merge", memory="40KiB"): "memory: 5 pages",
    changed(algorithm="digest", fetch="planed"): "fetch strategy: 'planed' is unknown; did you mean planned",
    changed(algorithm="digest", fetch="mine.py"): "mine.py",
    changed(algorithm="digest", first="sort"): "join: 'sort' is unknown; did you mean",
    changed(algorithm="digest", first="digest"): "first: digest, but it fetches rows",
    changed(algorithm="digest", fetch="graph-based", k="0"): "k: 0.0, but it must be above 0",
    changed(algorithm="digest", fetch="graph-based", k="nan"): "k: nan",
    changed(algorithm="digest", memory="8KiB"): "memory: 1 pages, but a digest join needs",
    changed(algorithm="digest", memory="16KiB"): "memory: 2 pages, but a digest join needs",
    changed(algorithm="digest", memory="24KiB"): "first: sort-merge, but its 2 pages of memory do not do for the digests",
    changed(fetch="naive"): "fetch: naive, but",
    changed(k="2"): "k: 2.0, but",
    changed(algorithm="digest", k="2"): "k: 2.0, but planned fetching does not take it",
    changed(algorithm="digest", fetch="naive", k="2"): "k: 2.0, but naive fetching does not take it",
    changed(device="nope"): "--device: device preset: 'nope' is unknown",
    changed(placement="zz"): "--placement: 'zz' is unknown",
    changed(on="zz"): "--on: column of customer: 'zz' is unknown; known: c_custkey, padding",
    "cache simulate zipf:pages=100,references=100 --policy : --size 10%": "--policy: replacement policy: '' is unknown; known: 2q",
    "cache simulate zipf:pages=1e30,references=100 --policy lru --size 10%": "pages: '1e30', but it must be below 4611686018427387904",
    changed(cores="2"): "--cores: it needs --strands",
    changed(columns="R.c_custkey"): "columns: R.c_custkey, but",
    changed(algorithm="rare", columns="R.c_nam"): "column of relation customer: 'c_nam' is unknown; known: c_custkey",
    changed(algorithm="flash-join", columns="c_custkey"): "columns: 'c_custkey', but a column is named R.COLUMN or S.COLUMN",
    changed(algorithm="rare", page_format="sqlite"): "--page-format: sqlite, but rare reads columns alone",
    changed(algorithm="rare", memory="24KiB"): "memory: 3 pages, but rare needs",
    changed(algorithm="flash-join", kernel="rare"): "kernel: rare, but it fetches rows",
    changed(partition="n-hash"): "partition: n-hash, but bnl does not take it",
    changed(sub_buffer="4KiB"): "sub-buffer: 4 KiB, but bnl does not take it",
    changed(algorithm="grace-hash", partition="n-hush"): "partition method: 'n-hush' is unknown; did you mean n-hash",
    changed(algorithm="grace-hash", partition="mine.py"): "mine.py",
    changed(algorithm="grace-hash", sub_buffer="4KiB"): "sub-buffer: 4 KiB, but partition method traditional does not take it",
    changed(algorithm="hybrid-hash", partition="n-hash", memory="96KiB", sub_buffer="0B"): "sub-buffer: 0 B, but it must be at least 1 B",
    changed(algorithm="hybrid-hash", partition="n-hash", memory="96KiB", sub_buffer="4096"): "--sub-buffer: '4096'",
    changed(algorithm="hybrid-hash", partition="n-hash", memory="96KiB", sub_buffer="-4KiB"): "--sub-buffer: '-4KiB'",
    changed(algorithm="grace-hash", partition="n-hash", memory="96KiB", sub_buffer="1MiB"): "sub-buffer: 1 MiB, but an output buffer has",
    changed(algorithm="grace-hash", partition="n-hash", memory="96KiB", sub_buffer="3KiB"): "is not a multiple of it",
    changed(algorithm="grace-hash", partition="n-hash", memory="40KiB"): "sqrt(F |R|)",
    "validate joins --path x --device ocz-core-60gb --allow-write --algorithm bnl --partition n-hash": "partition: n-hash, but bnl",
    changed(page_size="8192"): "--page-size: '8192'",
    changed(page_size="3000B"): "power of two",
    f"{changed()} --allow-write": "--allow-write: ocz-core-60gb is a preset",
    "cache simulate zipf:pages=9 --format arc": "--format: zipf is generated, and no file with a format",
    "cache simulate zipf:pages=9 --from arc": "--from: it is --format now",
    "trace replay a.csv --on ocz-core-60gb": "--on: it is --device now",
    "trace replay a.csv --device ocz-core-60gb --scale-offsets": "--scale-offsets: it is --wrap now",
    "device new --from=micron-p300 --out new.toml": "--from: it is --preset now",
    "device identify --from a.csv --out new.toml": "--from: it is --figures now",
    "validate joins --path x --device ocz-core-60gb --key k": "--key: it is --on now",
    "validate joins --path x --device ocz-core-60gb --join bnl": "--join: it is --algorithm now",
    "validate joins --on ./x --device ocz-core-60gb": "Missing option '--path'",
    "cache curve zipf:pages=9 --columns page=a": "--columns: zipf is generated, and no file with a format",
    "cache simulate zipf:pages=9 --depth 4": "--depth: it needs --device",
    "cache simulate zipf:pages=9 --requests r.parquet": "--requests: it needs --device",
    "cache simulate zipf:pages=9 --allow-write": "--allow-write: there is no real file or device",
    "device calibrate ocz-core-60gb --out new.toml --yes-destroy /dev/x": "--yes-destroy: ocz-core-60gb is no block device",
    "device bench ocz-core-60gb --allow-write": "--allow-write: ocz-core-60gb is a preset",
    "device bench ocz-core-60gb --set aio --ignore 3": "--ignore: the set aio has no such runs",
    "device bench ocz-core-60gb --state 0.3 --precondition empty": "--precondition: --state says in which state the drive begins",
    "device bench ocz-core-60gb --timeline-from 1s": "--timeline-from: it needs --timeline",
    "pool run zipf:pages=9 --memory 1MB --log-bytes 300B": "--log-bytes: it needs --log",
    "pool run zipf:pages=9 --memory 1MB --fuzzy": "--fuzzy: it needs --checkpoint",
    "device serve ocz-core-60gb --run true --listen 127.0.0.1": "--listen: it needs --port",
    "validate joins --path new --device ocz-core-60gb --r a.csv --s b.csv --scale 0.2": "--scale: it is of do2009's relations",
    "validate joins --path new --device ocz-core-60gb --time 5s": "--time: the preset is not calibrated here",
    changed(page_size="0.6B"): "--page-size: '0.6B', but a size is a whole number of bytes",
    "pool run zipf:pages=9 --memory 1MB --page-size 0B": "--page-size: 0 B, but it must be at least 512 B",
    "pool restart zipf:pages=9 --memory 1MB --ssd 1MB --page-size 0.4B": "--page-size: '0.4B', but a size is a whole number of bytes",
    "pool restart zipf:pages=9 --memory 1MB --ssd 1MB --page-size 0B": "--page-size: 0 B, but it must be at least 512 B",
    "pool restart zipf:pages=9 --memory 1MB --ssd 1MB --scale 2": "--scale: 2.0, but a number above 0 and at most 1 is needed",
    "pool run zipf:pages=9 --memory 1MB --scale 1000": "--scale: 1000.0, but a number above 0 and at most 1 is needed",
    "device show pipe.toml": "cannot read pipe.toml: it is not a regular file",
    "device identify --figures pipe.csv --out new.toml": "cannot read pipe.csv: it is not a regular file",
    "device identify --figures /dev/zero --out new.toml": "cannot read /dev/zero: it is not a regular file",
    "pool crash --saved pipe.csv": "cannot read pipe.csv: it is not a regular file",
    changed(page_size="128KiB"): "64 KiB",
    changed(page_format="pox"): "--page-format: 'pox' is unknown; did you mean pax?",
    changed(page_format="mine.py"): "mine.py",
    changed(page_format="pax", page_size="1000B"): "a multiple of 512 B",
    changed(page_format="pax", page_size="128KiB"): "up to 64 KiB",
    changed(page_format="postgresql", page_size="512B"): "a power of two from 1 KiB to 32 KiB",
    changed(page_format="postgresql", page_size="64KiB"): "a power of two from 1 KiB to 32 KiB",
    changed(page_format="postgresql", r="wide.parquet", on="key=o_custkey"): "of the 8160 B that a page holds of one row",
    "export do2009:customer@0.01 --out new --page-size 8000B": "--page-size: 8000 B, but",
    "export do2009:customer@0.01 --out new --page-format pax": "no other program reads its pages",
    "export do2009:customer@0.01 --out full": "--out: full is not empty; add --force",
    "export times.parquet --out new": "column time is time64[us], but PostgreSQL's pages hold",
    "export zero.parquet --out new": "cannot be stored as text: a text has a zero character",
    "export named.parquet --out new": "column: 'ctid', but PostgreSQL takes names",
    changed(page_format="pax", r="wide.parquet", on="key=o_custkey"): "a row of relation wide takes",
    "validate joins --path x --device ocz-core-60gb --allow-write --page-format pox": "did you mean pax",
    changed(on="c_custkey"): "column: 'c_custkey'",
    changed(on="=o_custkey"): "on:",
    changed(on="padding=o_custkey"): "cannot be compared",
    changed(r="do2009:customers@0.01"): "did you mean customer",
    changed(r="do2009:customer"): "scale factor",
    changed(r="missing.parquet"): "missing.parquet",
    changed(r="missing.sqlite:t"): "missing.sqlite",
    changed(r="missing.csv"): "missing.csv",
    changed(r="nonsense"): "nonsense",
    changed(r="broken.parquet"): "broken.parquet",
    changed(r="broken.sqlite:t"): "broken.sqlite",
    changed(r="texts.parquet", on="key=o_custkey"): "cannot be compared",
    changed(device="broken.toml"): "broken.toml",
    changed(device="missing.toml"): "missing.toml",
    TOO_SMALL: "device: 1 MiB",
    changed(device="./disk.img"): "--allow-write",
    changed(placement="nowhere"): "placement",
    changed(cpu="pentium-d-2010"): "did you mean pentium-d-2009",
    changed(io="both"): "--io",
    changed(device="./disk.img", cpu="pentium-d-2010"): "did you mean pentium-d-2009",
    changed(device="full"): "neither a file nor a block device",
    changed(device="no/such/disk.img"): "no folder no/such",
    changed(r="texts.parquet", on="key", device="./texts.parquet") + " --allow-write --force": "what --r reads",
    changed(device="./same", out="same") + " --allow-write": "also what --device names",
    changed(device="./disk.img", placement="two-disks") + " --allow-write": "one disk",
    changed(device="./disk.img", placement="ext3") + " --allow-write": "a file system of its own",
    changed(r="control.csv"): "control.csv",
    changed(r="view.sqlite:v"): "v cannot be read: no such table: main.absent",
    changed(r="cut.sqlite:t"): "truncated",
    changed(r="texts.sqlite:t"): "not a SQLite database",
    changed(r="full/"): "source: 'full/'",
    changed(r="wide.parquet", on="key=o_custkey"): "a row of relation wide takes",
    changed(r="twice.csv"): "two columns are named a",
    changed(r="ragged.csv"): "ragged.csv: row 2 (the names are row 1): fields 1, but columns 2",
    changed(r="empty.csv"): "empty.csv: it is empty",
    changed(r="x" * 300 + ".parquet"): "xxx.parquet: File name too long",
    changed(json="-"): "'-' stands for no file",
    changed(out="no/such/folder/rows.parquet", device="./disk.img"): "--out: cannot write",
    changed(memory="1e3MB"): "--memory: '1e3MB'",
    changed(memory="-1MB"): "--memory: '-1MB'",
    changed(memory="9" * 5000 + "B"): "(5,003 characters), but it is too large",
    changed(page_size="1." + "5" * 5000 + "KiB"): "a power of two",
    changed(r="x" * 5000 + "@1"): "(5,002 characters)",
    changed(json="loop"): "--json: loop exists; add --force",
    changed(json="na\udcffme.json"): "is not a valid UTF-8 name",
    changed(out="na\udcffme.parquet"): "is not a valid UTF-8 name",
    changed(device="digits.toml"): "digits.toml is not valid TOML",
    changed(device="nested.toml"): "nested.toml is not valid TOML",
    changed(device="kind.toml"): "kind: '[1]' is unknown",
    changed(device="gap.toml"): "wear_gap: an integer of 71 bits, but it must be below",
    changed(device="queues.toml"): "queues: 100000000, but it must be at most 65535",
    changed(device="interrupts.toml"): "program_step: 1 ns, but",
    changed(device="turning.toml"): "rotation: 100000000000000000, but it must be at most",
    changed(device="table-inf.toml"): "seek_table: inf",
    changed(device="table-nan.toml"): "seek_table: nan",
    changed(device="table-huge.toml"): "seek_table: 1e+300",
    changed(cpu="digits.toml"): "digits.toml is not valid TOML",
    "device bench ocz-core-60gb --quick --size 0B": "--size: 0 B, but it must be at least 512 B",
    "device bench nvme-tlc-1tb --quick --only order --precondition empty,erases=1e30": "erases: 1e+30, but",
    "device serve nvme-tlc-1tb --socket s --precondition empty,erases=1e30": "erases: 1e+30, but",
    "device show policy.toml": "garbage collection policy: '../../b/bad' is unknown",
    "device show name.toml": "name.toml: name: 3, but it must be a text",
    "device --install-completion": "No such option",
    "trace info foreign.csv": "--columns",
    "trace info foreign.csv --columns time=a:s,time=b:s,offset=c:sectors,length=d:sectors": "time is named twice",
    changed(memory="0B"): "memory: 0 B",
    changed(page_size="256B"): "512 B",
    changed(out="no/such/folder/rows.parquet"): "--out: cannot write",
    changed(out="kept.txt"): "--force",
    changed(json="."): "folder",
    changed(json="a.out", trace="a.out"): "also what --trace writes",
    changed(r="texts.parquet", out="texts.parquet") + " --force": "--out: texts.parquet is also what --r names",
    changed(device="small.toml", json="small.toml") + " --force": "--json: small.toml is also what --device names",
    changed(buffers_for="nothing"): "device preset",
    "join bnl": "Missing option",
    "joint": "joint",
    "join bnl --speed 3": "--speed",
    "device show ocz-core": "did you mean ocz-core-60gb",
    "device lisst": "lisst",
    "trace info missing.parquet": "missing.parquet",
    "trace info broken.parquet": "broken.parquet",
    "trace info texts.parquet": "texts.parquet",
    "fetch loops.csv --frames 3": "edges: (b, b), but a page cannot be paired with itself (a self-loop)",
    "fetch negative.csv --frames 3": "results: -1, but pages, and what their edges are worth, must be at least 0",
    "fetch halves.csv --frames 3": "results: 0.5, but they must be a list of whole numbers",
    "fetch empty.csv --frames 3": "empty.csv: it is empty",
    "fetch missing.csv --frames 3": "missing.csv: there is no such file",
    "fetch texts.csv --frames 3": "edge list texts: it needs two columns",
    "fetch bare.csv --frames 3": "edge list bare: its columns are named 0, 5: a first line must name them",
    "fetch loops.csv --frames 3 --results n": "column: 'n' is unknown",
    "fetch generel --frames 3": "graph: 'generel' is unknown; did you mean general",
    "fetch general --frames 1": "frames: 1, but two pages must be in memory together",
    "fetch general --frames two": "--frames: 'two'",
    "fetch general": "Missing option",
    "fetch general:density=2 --frames 3": "density: 2.0, but it must lie between 0 and 1",
    "fetch general:pages=100000000 --frames 3": "pages: 100000000, but it must lie between 1 and 10000",
    "fetch geometric:degree=nan --frames 3": "degree: nan, but",
    "fetch join:page=3 --frames 3": "parameter of join: 'page' is unknown; did you mean pages",
    "fetch general --frames 3 --exact": "pages: 500, but the optimum is searched for up to 64",
    "fetch general --frames 3 --planner overlaps": "did you mean overlap",
    "fetch general --frames 3 --planner mine.py": "no file at mine.py",
    "fetch general:pages=5 --frames 3 --planner wrong.py": "'wrong.py' gave a list, but a FetchPlan of the given graph",
    "fetch loops.csv --frames 3 --out loops.csv --force": "is also what GRAPH names",
    "fetch general --frames 3 --out kept.txt": "--force",
    "cache simulate bare.csv --size 0%": "size: '0%', but a pool holds at least one page",
    "cache simulate bare.csv --size 101%": "size: '101%', but a share is at most 100 %",
    "cache simulate bare.csv --size 10": "size: '10', but a share such as 10%",
    "cache simulate bare.csv --size 1KiB": "size: 1 KiB, but a pool holds from one page of 4 KiB",
    "cache simulate bare.csv --policy lrru": "replacement policy: 'lrru' is unknown; did you mean lru",
    "cache simulate bare.csv --policy mine.py": "no file at mine.py",
    "cache simulate bare.csv --policy wrong.py": "'wrong.py' does not define",
    "cache simulate bare.csv --policy gclock:limit=0": "limit of gclock: 0, but",
    "cache simulate bare.csv --policy lru-k:k=2,k=3": "k of lru-k: given twice, but it must be given once",
    "cache simulate zipf:pages=10,pages=5": "pages of zipf: given twice, but it must be given once",
    "cache simulate bare.csv --policy gclock:limits=1": "parameter of gclock: 'limits' is unknown; did you mean limit",
    "cache simulate empty.csv": "empty.csv",
    "cache simulate missing.txt": "no file at missing.txt",
    "cache simulate bare.csv --jobs 0": "jobs: 0, but",
    "cache simulate bare.csv --limit 0": "limit: 0, but",
    "cache simulate bare.csv --limit few": "limit: 'few', but",
    "cache simulate bare.csv --page-size 0B": "--page-size: 0 B, but",
    "cache simulate kept.csv --out kept.csv --force": "is also what TRACE names",
    "cache simulate bare.csv --seed 1e30": "--seed",
    "cache simulate bare.csv --seed 99999999999999999999": "seed: 99999999999999999999, but",
    "cache simulate bare.csv --out rows.txt": "its name must end in .csv, .parquet",
    "cache simulate bare.csv --plot kept.txt": "its name must end in .svg, .png, .pdf",
    "cache simulate bare.csv --json kept.txt": "--force",
    "cache simulate zip:pages=3": "trace: 'zip' is unknown; did you mean zipf",
    "cache simulate zipf:pages=0": "pages: 0, but it must be at least 1",
    "cache simulate zipf:page=3": "parameter of zipf: 'page' is unknown; did you mean pages",
    "cache simulate broken.parquet": "broken.parquet",
    "cache simulate foreign.csv": "--columns",
    "cache simulate foreign.csv --columns page=x": "line 1: no column is x; name one with --columns page=NAME",
    "cache keep kept.txt --out kept.txt": "--out: kept.txt is also what TRACE names",
    "cache keep kept.txt --out pages --to arc": "it can only be read; lines and parquet can be written",
    "cache keep kept.txt --out pages --to liens": "page trace format: 'liens' is unknown; did you mean lines",
    "cache compare bare.csv lru": "policy: lru, but a comparison needs at least two",
    "pool run tpc-c:warehouses=1 --memory 20MB --ssd 100KB --design lc": "ssd: 100 KB, but lc divides it into 16 partitions",
    "pool run tpc-c:warehouses=1 --memory 20MB --design dw": "ssd: 0 B, but dw divides it",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --dirty-limit 1.5": "--dirty-limit: '1.5', but a share",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --dirty-limit 101%": "--dirty-limit: '101%', but a share of",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --dirty-limit -1%": "--dirty-limit: '-1%', but a share of",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --filling half": "--filling: 'half', but a share of",
    "pool run tpc-c:warehouses=20 --memory 20MB --design none --disk ssd-of-no-name": "device preset: 'ssd-of-no-name' is unknown",
    "pool run tpc-c:warehouses=9000 --memory 200MB --design none --disk toshiba-5400-320gb": "but the disk, toshiba-5400-320gb, holds",
    "pool run tpc-c:warehouses=1 --memory 20MB --ssd 90GB --ssd-device intel-x25e-64gb --design lc": "but the ssd, intel-x25e-64gb, holds",
    "pool run tpc-c:warehouses=1 --memory 20MB --ssd 9MB --design lcc": "SSD buffer-pool extension: 'lcc' is unknown; did you mean lc",
    "pool run tpc-c:warehouses=1 --memory 20MB --ssd 9MB --design tac:extend=1": "tac: 'extend' is unknown; did you mean extent",
    "pool run tpc-cc:warehouses=1 --memory 20MB --design none": "'tpc-cc' is unknown; did you mean tpc-c",
    "pool run tpc-c:warehouse=1 --memory 20MB --design none": "parameter of tpc-c: 'warehouse' is unknown; did you mean warehouses",
    "pool run tpc-c:warehouses=1 --memory 1MB --design none": "memory: 122 pages, but 64 clients may each hold 32 pages at once",
    "pool run tpc-c:warehouses=1 --memory 20 --design none": "memory: '20', but",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --time 0s": "time: 0 ns, but it must be at least",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --last 0%": "last: 0, but",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --time 0h": "time: 0 ns, but it must be at least",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --time 2": "time: '2', but a number with a unit",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --time 1us --scale 0.01": "at least 100 ns at scale 0.01",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --scale 0": "--scale: 0.0, but a number above 0 and at most 1",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --scale 1.5": "scale: 1.5, but",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --scale nan": "scale: nan, but",
    "pool run kept.txt --memory 20MB --design none --scale 0.5": "scale: 0.5, but a recording cannot be scaled",
    "pool run tpc-c:warehouses=90 --memory 2GB --design dw --ssd 100MB --scale 0.001": "ssd: 100 KB, but dw divides it into 16 partitions",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --jobs 0": "jobs: 0, but it must be at least 1",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --dirty-limit -0.1": "--dirty-limit: '-0.1', but a share",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --dirty-limit 1.2": "--dirty-limit: '1.2', but a share",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --expansion-until disk": "--expansion-until: 'disk', but it must be",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --dirty-limit nan": "--dirty-limit: 'nan', but a share",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 30": "ssd: '30', but a number with a unit",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --throttle -1": "throttle: -1, but it must be at least 0",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --partitions 0": "partitions: 0, but it must be at least 1",
    "pool run tpc-c:warehouses=1 --memory 20MB --design lc --ssd 1MB --group 0": "group: 0, but it must be at least 1",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --think -1s": "think: -1 s, but",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --page-size 100B": "--page-size: 100 B, but it must be at least 512 B",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --policy opt": "policy: opt, but what is asked for next is not known",
    "pool run nothing.csv --memory 20MB --design none": "nothing.csv",
    "pool run broken.parquet --memory 20MB --design none": "broken.parquet",
    "pool run foreign.csv --memory 20MB --design none": "foreign.csv",
    "pool run empty.csv --memory 20MB --design none": "empty.csv",
    "pool run tpc-c:warehouses=1 --memory 20MB --design nothing.py": "no file at nothing.py",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --disk broken.toml": "broken.toml",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --disk 0xtoshiba-5400-320gb": "0xtoshiba-5400-320gb",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --disk ./nothing": "nothing",
    "pool run tpc-c:warehouses=0 --memory 20MB --design none": "warehouses: 0.0, but",
    "pool run tpc-c --memory 20MB --design none": "warehouses",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --plot told.txt": "its name must end in .svg",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --out-dir full": "not empty",
    "pool run tpc-c:warehouses=1 --memory 20MB --design ,": "design: none, but at least one is needed",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --without throtle": "part: 'throtle' is unknown; did you mean throttle",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --policy lrru": "replacement policy: 'lrru' is unknown; did you mean lru",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --disk rates:reed=1": "rates: 'reed' is unknown; did you mean read",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --log rates": "read",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --seed -1": "seed: -1, but",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --clients 0": "clients: 0, but it must be at least 1",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --json kept.txt": "--force",
    "pool run tpc-c:warehouses=1 --memory 20MB --ssd 9MB --design none,lc --trace 2.parquet": "trace: 2 runs, but it holds the requests",
    "pool run tpc-c:warehouses=1 --memory 20MB --design none --out rows.txt": "its name must end in .csv, .parquet",
    "reproduce do2010": "did you mean do20",
    "reproduce do2009/table33": "did you mean table",
    "reproduce do2009 --scale 0": "scale: 0",
    "reproduce do2009 --scale 2": "scale: 2",
    "reproduce do2009 --scale nan": "scale: nan",
    "reproduce do2009 --scale 0.000001": "scale: 1e-06",
    "reproduce do2009 --scale small": "--scale",
    "reproduce do2009/table1 --jobs 0": "jobs: 0",
    "reproduce do2009/table3-io --scale 0.005 --jobs 1 --seed -1": "seed: -1",
    "reproduce do2009/table1 --out kept.txt": "is a file",
    "reproduce do2009/table1 --out full": "not empty",
    "reproduce do2009/table1 --json kept.txt": "--force",
}


@pytest.fixture
def files(here: Path) -> Path:
    """Files that are damaged, foreign, or must not be overwritten."""
    (here / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    (here / "broken.sqlite").write_bytes(b"SQLite format 3\0" + bytes(40))
    (here / "broken.toml").write_text("kind = [")
    (here / "kept.txt").write_text("kept")
    (here / "full").mkdir()
    (here / "full" / "kept.txt").write_text("kept")
    pq.write_table(pa.table({"key": ["one", "two"]}), here / "texts.parquet")
    pq.write_table(pa.table({"key": [1], "wide": ["x" * 100_000]}), here / "wide.parquet")
    for name, column in (("times", {"time": pa.array([0], pa.time64("us"))}), ("zero", {"k": ["a\0"]}), ("named", {"ctid": [1]})):
        pq.write_table(pa.table(column), here / f"{name}.parquet")
    (here / "texts.sqlite").write_text("no database " * 20)
    with closing(sqlite3.connect(here / "view.sqlite")) as database:
        database.executescript("create table t (k); create table u (k); create view v as select * from absent; vacuum")
    (here / "cut.sqlite").write_bytes((here / "view.sqlite").read_bytes()[:5000])
    for name, text in (("ragged", "a,b\n1\n"), ("twice", "a,a\n1,2\n"), ("empty", ""), ("control", "a,b\n\x1b[31m\x07\n")):
        (here / f"{name}.csv").write_text(text)
    (here / "bare.csv").write_text("0,5\n0,6\n1,5\n")
    for name, worth in (("loops", 1), ("negative", -1), ("halves", 0.5)):
        (here / f"{name}.csv").write_text(f"x,y,weight\na,b,{worth}\nb,{'b' if name == 'loops' else 'c'},1\n")
    (here / "texts.csv").write_text("a\n1\n")
    (here / "wrong.py").write_text("def plan(graph, frames):\n    return [0]\n")
    (here / "loop").symlink_to("loop")
    for name in ("pipe.toml", "pipe.csv"):
        os.mkfifo(here / name)
    (here / "digits.toml").write_text("kind = 1" + "0" * 5000)
    (here / "nested.toml").write_text(f"kind = {'[' * 100_000}{']' * 100_000}")
    flash = (PRESETS / "nvme-tlc-1tb.toml").read_text()
    (here / "policy.toml").write_text(re.sub('(?m)^gc = { value = "[^"]*"', 'gc = { value = "../../b/bad"', flash))
    (here / "name.toml").write_text(re.sub("(?m)^name = .*", "name = 3", flash))
    (here / "foreign.csv").write_text("a,b,c,d\n1,2,3,4\n2,3,4,5\n")
    (here / "kind.toml").write_text('kind = [1]\n[parameters]\nread = { value = 1, source = "" }\n')
    for name, kind, line in (
        ("gap", "nvme-tlc-1tb", "wear_gap = { value = 2000000000000000000000, "),
        ("queues", "nvme-tlc-1tb", "queues = { value = 100000000, "),
        ("interrupts", "nvme-tlc-1tb", 'program_step = { value = "1ns", '),
        ("turning", "toshiba-5400-320gb", 'rotation = { value = "100000000s", '),
        ("table-inf", "toshiba-5400-320gb", "seek_table = { value = [[1, 1.0], [2, inf]], "),
        ("table-nan", "toshiba-5400-320gb", "seek_table = { value = [[1, nan]], "),
        ("table-huge", "toshiba-5400-320gb", "seek_table = { value = [[1, 1e300]], "),
    ):
        lines = (PRESETS / f"{kind}.toml").read_text().splitlines()
        kept = [each for each in lines if not each.startswith(f"{line.partition(' ')[0]} =")]
        begin = kept.index("[parameters]") + 1
        (here / f"{name}.toml").write_text("\n".join([*kept[:begin], f'{line}source = "" }}', *kept[begin:]]))
    (here / "small.toml").write_text((PRESETS / "ocz-core-60gb.toml").read_text().replace('"60GB"', '"1MiB"'))
    return here


@pytest.mark.parametrize("line", list(BAD), ids=range(len(BAD)))
def test_one_line_and_exit_code_2(line: str, files: Path, flashsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before, waited, wait = sorted(files.rglob("*")), list[str](), Compilation.wait

    def waiting(compilation: Compilation, what: str) -> None:
        waited.append(what)
        wait(compilation, what)

    monkeypatch.setattr(Compilation, "wait", waiting)
    result = flashsim(line)
    assert result.exit_code == 2, result.output
    assert bool(waited) == (line == TOO_SMALL)
    assert BAD[line] in result.stderr and result.stderr.startswith("flashsim: ")
    assert result.stderr.endswith("\n") and result.stderr[:-1].isprintable()
    assert sorted(files.rglob("*")) == before
    assert (files / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize("formula, told", [("'none.py'", "none.py"), ("'nbl'", "did you mean bnl"), ("5", "formula: 5")])
def test_a_formula_that_cannot_be_had_is_refused_before_the_run(formula: str, told: str, here: Path, flashsim: Run) -> None:
    (here / "mine.py").write_text(f"from algorithms.joins.bnl import allocate, join\nFORMULA = {formula}\n")
    result = flashsim(changed(algorithm="mine.py"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1 and told in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(here: Path, flashsim: Run) -> None:
    (here / "locked").mkdir(mode=0o500)
    result = flashsim(changed(out="locked/rows.parquet"))
    assert result.exit_code == 2
    assert "Permission denied" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(flashsim: Run) -> None:
    result = flashsim("device list --json /dev/full")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1 and "No space left" in result.stderr
