"""Page-access scheduling: in which order to fetch pages that must meet in pairs, with few frames (OPAS1, OPAS2); it needs no join."""
