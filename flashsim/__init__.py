"""Devices and storage: what a database algorithm costs on a storage device, in virtual time.

Importing this package first makes sure that its four siblings are flashsim's own (see `flashsim.siblings`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from flashsim.siblings import shadowed, started_as_command

__version__ = "0.1.0"

_problem = shadowed(Path(__file__).parent)
if _problem:
    if started_as_command():  # the command itself may be what is shadowed, so nobody else could report this
        print(f"flashsim: {_problem}", file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(_problem)
