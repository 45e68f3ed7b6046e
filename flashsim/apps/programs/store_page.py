"""The page of embedded stores under power cuts."""

from typing import Any


def verdict(row: dict[str, Any]) -> str:
    return str(row.get("failing"))


def page(outcome: Any) -> str:
    return ""
