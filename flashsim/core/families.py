"""All families of flashsim, found in its source: no list of them is kept."""

import re
from collections.abc import Iterator

from flashsim.core.source_files import source_tree

_FAMILY = re.compile(r'^(\w+) = Family\(\s*"([\w.]+)", "[^"]*", (\w+)', re.MULTILINE)


def declarations() -> Iterator[tuple[str, str, str, str]]:
    """Each family's package, and the module, the name and the protocol that it is bound to."""
    for module, text in source_tree().sources.items():
        for name, package, protocol in _FAMILY.findall(text.decode()):
            yield package, module, name, protocol
