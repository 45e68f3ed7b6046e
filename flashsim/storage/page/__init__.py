"""Page formats: how the tuples of a file become bytes, and are found again."""

from flashsim.storage.page.base import PAGE_FORMATS, PageFormat

__all__ = ["PAGE_FORMATS", "PageFormat"]
