"""Formats of page traces: files that say which page is asked for, one reference after the other."""

from traces.page_format.base import PAGE_FORMATS

__all__ = ["PAGE_FORMATS"]
