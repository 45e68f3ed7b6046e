"""A page of HTML as tests see it: its elements nest, it loads nothing, and its links lead somewhere."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

_VOID = {"meta", "br", "link", "img", "input", "hr"}
#: Elements that make a browser load something, and attributes that say what.
_LOADERS = {"script", "iframe", "object", "embed", "audio", "video", "source", "base"}
_ADDRESSES = {"src", "srcset", "href", "xlink:href", "action", "data", "poster"}


class Page(HTMLParser):
    """Checks that elements nest, and collects words, ids, addresses and how often each element occurs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.nested: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.tags: Counter[str] = Counter()
        self.words = ""
        self.feed(text)
        self.close()
        assert self.nested == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.addresses += [value or "" for name, value in attrs if name in _ADDRESSES]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in _VOID:
            self.nested.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.nested.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def whole(text: str) -> Page:
    """The page, once it is sure that it loads nothing, that every link leads to a place in it, and that no id is given twice."""
    page = Page(text)
    assert not _LOADERS & set(page.tags) and "@import" not in text and "javascript:" not in text
    assert all(address.startswith(("#", "data:,")) for address in page.addresses)
    assert not re.search(r"url\((?!#)", text)
    assert [name for name, count in Counter(page.ids).items() if count > 1] == []
    leads_to = {address[1:] for address in page.addresses if address.startswith("#")} | set(re.findall(r"url\(#([^)]+)\)", text))
    assert leads_to <= set(page.ids)
    return page
