"""Apps, a folder each, whole: no floor imports one, and they do not import each other."""
