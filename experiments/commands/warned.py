"""Bridge."""

from experiments.commands.declared import warnings_as_lines as warnings_as_lines
