"""A submission's own process: it has limits on time and memory and reaches no files, network or other processes.

It is started by `flashsim.coursework.submission` without installed packages, and imports nothing of flashsim. A line of JSON in
is a call; a line out answers it. What decides about marks never runs here.
"""

import json
import os
import random
import sys
from collections.abc import Callable
from typing import Any

#: What messages call a submission, which is no file; to show a line that is no Python, Python tries to open it.
NAME = "submission"
#: Exit code after a breach, which was named in the last line.
BREACH = 3
#: Audited events that are refused, by what they reach for.
REFUSED = {
    "socket.": "network",
    "subprocess.": "other processes", "os.fork": "other processes", "os.exec": "other processes", "os.posix_spawn": "other processes",
    "os.spawn": "other processes", "os.system": "other processes", "os.kill": "other processes", "os.startfile": "other processes",
    "pty.": "other processes", "signal.pthread_kill": "other processes", "_thread.start_new_thread": "other threads",
    "ctypes.": "foreign code", "mmap.": "memory of others", "resource.": "its own limits", "sys.setprofile": "the checker",
    "sys.settrace": "the checker", "gc.get_": "the checker",
    "shutil.": "files", "tempfile.": "files", "glob.": "files", "sqlite3.": "files", "os.chmod": "files", "os.chown": "files",
    "os.link": "files", "os.mkdir": "files", "os.remove": "files", "os.rename": "files", "os.rmdir": "files", "os.symlink": "files",
    "os.truncate": "files", "os.utime": "files", "os.setxattr": "files", "os.walk": "files", "os.fwalk": "files", "os.chdir": "files",
}  # fmt: skip
#: Packages whose import is a look into the solutions.
OWN = ("flashsim", "algorithms", "models", "traces", "labs", "tests")
#: Events that read a file or a folder, which the imports of the standard library do.
_READS = ("open", "os.listdir", "os.scandir")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def guard(say: Callable[[dict[str, Any]], None]) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook, which nothing in the process can take away: it names what a submission must not do, and ends the process."""
    library = os.path.dirname(os.path.realpath(os.__file__)) + os.sep

    def breach(kind: str, what: str) -> None:
        say({"breach": kind, "what": what})
        os._exit(BREACH)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in _READS:
            path = os.path.realpath(os.fsdecode(args[0])) if isinstance(args[0], (str, bytes)) else ""
            written = event == "open" and isinstance(args[2], int) and args[2] & _WRITING
            if written or not ((path + os.sep).startswith(library) or args[0] == NAME):
                breach("files", f"{event} {str(args[0])[:80]}")
        elif event == "import" and args[0].partition(".")[0] in OWN:
            breach("the solutions", f"import {args[0]}")
        else:
            for begin, kind in REFUSED.items():
                if event.startswith(begin):
                    breach(kind, event)

    return hook


def work(lines: Any, say: Callable[[dict[str, Any]], None], source: list[str]) -> None:
    """Run the parts of a submission's text, and answer calls of what they define."""
    names: dict[str, Any] = {"__name__": "submission"}
    objects: list[Any] = []
    problems: list[str] = []
    for part in source:
        try:
            exec(compile(part, NAME, "exec"), names)
        except Exception as problem:
            problems.append(_in_words(problem))
    say({"answer": None})
    for line in lines:
        call = json.loads(line)
        wanted = call.get("new") or call["name"]
        if "object" not in call and wanted not in names:
            raise NameError("; ".join([f"{wanted} is not defined", *problems]))
        if "new" in call:
            objects.append(names[wanted](*call["arguments"]))
            continue
        function = getattr(objects[call["object"]], wanted) if "object" in call else names[wanted]
        answer = function(*call["arguments"])
        if call["asked"]:
            say({"answer": answer})


def _in_words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"


def main() -> None:
    import resource

    lines, out = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    task = json.loads(next(lines))
    for limit, value in ((resource.RLIMIT_CPU, task["seconds"]), (resource.RLIMIT_AS, task["memory"]), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(limit, (value, value))
    random.seed(0)
    text, write, flush = json.dumps, out.write, out.flush

    def say(message: dict[str, Any]) -> None:
        write(text(message) + "\n")
        flush()

    sys.addaudithook(guard(say))
    try:
        work(lines, say, task["source"])
    except MemoryError:
        say({"breach": "memory", "what": f"more than {task['memory'] >> 20} MiB"})
    except BaseException as problem:
        say({"error": _in_words(problem)})


if __name__ == "__main__":
    main()
