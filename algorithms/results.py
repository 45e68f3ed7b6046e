"""How result rows leave an algorithm: in batches of bounded size."""

#: Most result rows that are emitted at once.
BATCH = 1 << 16
