"""The file that a preset is written into."""

from typing import Any

from flashsim.core.errors import InvalidParameterError
from flashsim.experiments.runs.outputs import final_name


def preset_file(out: Any, default: str = "") -> str:
    """The name of the file that `out` stands for, or the default if it is None.

    Raises
    ------
    InvalidParameterError
        It does not end in ``.toml``.
    """
    target = default if out is None else final_name(out)
    if not target.endswith(".toml"):
        raise InvalidParameterError("out", target, "a preset's name must end in .toml")
    return target
