"""Flash translation layers, one file each."""
