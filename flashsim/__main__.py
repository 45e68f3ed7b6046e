"""Starts the command line, once `flashsim` itself has checked that ``experiments`` is its own sibling."""

from __future__ import annotations

from importlib import import_module


def main() -> None:
    """Run the command ``flashsim``."""
    import_module("experiments.command_line").main()


if __name__ == "__main__":
    main()
