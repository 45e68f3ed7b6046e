"""Hard disks: geometry, seeks, rotation, cache, and the two models that time them."""
