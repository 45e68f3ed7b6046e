"""Operations that people run, each declared once: functions of modules of `face`."""

#: Subcommands: the module of this package that declares each, and its operation there; or the commands of a group.
COMMANDS: dict[str, str | dict[str, str]] = {
    "join": "face.join:join",
    "fetch": "face.fetch:fetch",
    "export": "face.export:export",
    "device": {"list": "face.devices:device_list", "show": "face.devices:device_show"},
    "trace": {
        "list": "face.trace:trace_list",
        "info": "face.trace:trace",
        "convert": "face.trace:trace_convert",
        "replay": "face.replay:replay",
    },
    "cache": {"list": "face.algorithms:cache_list"},
    "pool": {
        "list": "face.algorithms:pool_list",
        "run": "face.pool:pool",
        "crash": "face.pool_crash:pool_crash",
        "restart": "face.restart:restart",
    },
    "check": "face.check:check",
    "doctor": "face.doctor:doctor",
}
#: Help texts of groups of commands, a line and examples each.
GROUPS = {
    "device": """
        List, measure, fit and serve devices.
        flashsim device list
        flashsim device show ocz-core-60gb
        flashsim device bench ocz-core-60gb --quick --only order
        flashsim device calibrate seagate-st3300655lc --time 5s --out found-again.toml
        """,
    "trace": """
        Inspect, convert and replay traces.
        flashsim trace info bnl.parquet
        flashsim trace convert bnl.parquet bnl.iolog --to fio-iolog
        flashsim trace replay bnl.parquet --device intel-x25e-64gb
        """,
    "cache": """
        Compare replacement policies on traces.
        flashsim cache simulate zipf:pages=1000,references=1e5 --policy lru --policy arc --size 1%..80%
        flashsim cache compare pages.txt lru arc sieve --size 10%
        flashsim cache curve pages.txt
        flashsim cache list
        """,
    "pool": """
        Simulate a buffer pool that an SSD extends.
        flashsim pool run tpc-c:warehouses=2 --design none,lc --memory 20MB --ssd 140MB --time 4s
        flashsim pool crash --restart lvr --exhaustive --histories 3
        flashsim pool restart tpc-c:warehouses=2 --memory 20MB --ssd 140MB --time 20s --checkpoint 2s
        flashsim pool list
        """,
}
#: Functions of `fs` whose name is gone or means another thing now, and where to find what it meant.
RENAMED = {"cut_power": "it is fs.crash now", "lab": "it is fs.tiny_drive now", "crash": "a pool's database is crashed by fs.pool_crash"}
#: Names that others have for functions of `fs`, and what does the same here.
OTHER_NAMES = {
    "merge": "fs.join joins two tables",
    "plot": "results are drawn by their method plot",
    "simulate": "fs.join, fs.pool_run and fs.trace_replay simulate",
    "list_devices": "fs.device_list lists devices",
    "presets": "fs.device_list lists presets",
    "read_csv": "operations take paths of files",
}
#: Arguments of pandas' joins, and what stands for each here.
WORDS_OF_PANDAS = {
    "left_on": "on='LEFT_COLUMN=RIGHT_COLUMN' names both columns",
    "right_on": "on='LEFT_COLUMN=RIGHT_COLUMN' names both columns",
    "left": "the arguments r and s are the two tables",
    "right": "the arguments r and s are the two tables",
    "how": "every join is an inner join",
    "left_index": "on names a column; make one of the index with reset_index()",
    "right_index": "on names a column; make one of the index with reset_index()",
    "suffixes": "a column of s whose name is taken gets the suffix _s",
}
#: Former names of options and arguments, each with what it is called now: the first of these that the operation has.
FORMER_OPTIONS = {
    "on": ("device",), "from": ("format", "figures", "preset"), "key": ("on",), "join": ("algorithm",), "scale-offsets": ("wrap",),
    "base": ("preset",), "files": ("figures",),
}  # fmt: skip
