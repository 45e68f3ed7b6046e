"""Fixtures that run commands."""

from tests.commands import flashsim, here

__all__ = ["flashsim", "here"]
