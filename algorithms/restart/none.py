"""No warm restart: every frame counts as free, and the SSD is filled anew (SSDBP)."""

TITLE = "none, the SSD is empty after a restart"
