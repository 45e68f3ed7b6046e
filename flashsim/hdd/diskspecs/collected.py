"""What an import has found so far: values by parameter with their sources, and what the parameters cannot express."""

from pathlib import Path
from typing import Any

from flashsim.core.units import MILLISECONDS
from flashsim.hdd.diskspecs.block import Block

#: Blocks of DiskSim are sectors of so many bytes.
SECTOR = 512


class Collected:
    """Values and sources of parameters, notes for people, and files that were read beside the parameter files."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.notes: list[str] = []
        self.files: list[Path] = []

    def put(self, name: str, value: Any, source: str) -> None:
        self.values[name] = value
        self.sources[name] = source

    def put_time(self, name: str, block: Block, key: str, scale: float = 1.0, least: float | None = 0.0) -> None:
        """A time in milliseconds, times `scale`; one that is not given is left at the parameter's default."""
        value = block.number(key, 0.0, least)
        if block.has(key):
            self.put(name, milliseconds(value * scale), block.place(key) + (f" x {scale:g}" if scale != 1 else ""))

    def put_blocks(self, name: str, blocks: int, source: str) -> None:
        self.put(name, f"{blocks * SECTOR}B", source)

    def note_unless(self, block: Block, key: str, neutral: int, says: str) -> None:
        """Say that a whole number other than `neutral` is not modelled."""
        if block.has(key) and block.whole(key) != neutral:
            self.notes.append(f"{block.place(key)} = {block.whole(key)}: {says}")


def milliseconds(value: float) -> str:
    """A duration as presets give it, exact to the nanosecond.

    Examples
    --------
    >>> milliseconds(0.65), milliseconds(-0.483), milliseconds(0)
    ('0.65ms', '-0.483ms', '0ms')
    """
    nanoseconds = round(value * MILLISECONDS)
    whole, fraction = divmod(abs(nanoseconds), MILLISECONDS)
    shown = f"{whole}.{fraction:06}".rstrip("0").rstrip(".")
    return f"{'-' if nanoseconds < 0 else ''}{shown}ms"
