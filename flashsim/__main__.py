"""Starts the command line, once `flashsim` itself has checked that ``experiments`` is its own sibling."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """Run the command ``flashsim``."""
    interrupts = import_module("experiments.commands.interrupts")
    try:
        interrupts.heed()
        import_module("experiments.command_line").main()
    except SystemExit:
        interrupts.settle()
        raise
    except BaseException as problem:  # while modules are still loading
        if not interrupts.settle() and not isinstance(problem, KeyboardInterrupt):
            raise
        print("flashsim: interrupted; nothing was written", file=sys.stderr)
        exec("")  # Python takes an interrupt in code that was compiled from text for an unhandled one, until such code has run again
        sys.exit(130)


if __name__ == "__main__":
    main()
