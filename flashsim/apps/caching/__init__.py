"""Replacement policies on page references: misses by policy and size, miss-ratio curves, and what misses cost."""

COMMANDS = {
    "cache": {
        "simulate": "face.cache:cache",
        "compare": "face.cache:cache_compare",
        "curve": "face.cache:cache_curve",
        "keep": "face.cache:cache_keep",
    },
}
