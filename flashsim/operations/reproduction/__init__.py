"""Papers reproduced: claims judged, and the report."""
