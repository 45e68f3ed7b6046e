"""Starts the command line, once `flashsim` itself has checked that its siblings are its own."""

import gc
import os
import resource
import sys
from importlib import import_module

#: What the libraries take of the address space before anything is done; with less some of them hang.
_LEAST = 768 << 20


def _too_little_memory() -> str | None:
    """Why the limit on this process's memory is too low to begin; under a limit, one thread computes, since each reserves some."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if limit >= _LEAST:
        return None
    return (
        f"memory: {limit >> 20} MiB of address space (ulimit -v), but at least {_LEAST >> 20} MiB are needed to begin, and 2 GiB to compile"
    )


def main() -> None:
    """Run the command ``flashsim``."""
    interrupts = import_module("flashsim.experiments.runs.interrupts")
    try:
        interrupts.heed()
        import_module("flashsim.core.standard_streams").guard()
        if problem := _too_little_memory():
            print(f"flashsim: {problem}", file=sys.stderr)
            sys.exit(2)
        import_module("flashsim.operations.small_input").leave_uncompiled(sys.argv[1:])
        import_module("flashsim.command_line").main()
    except SystemExit:
        interrupts.settle()
        gc.freeze()  # the process ends: to search all that numba and pyarrow made for cyclic garbage takes a third of a second
        raise
    except BaseException as problem:  # while modules are still loading
        if not interrupts.settle() and not isinstance(problem, KeyboardInterrupt):
            raise
        print("flashsim: interrupted; no results were written", file=sys.stderr)
        exec("")  # Python takes an interrupt in code that was compiled from text for an unhandled one, until such code has run again
        sys.exit(130)


if __name__ == "__main__":
    main()
