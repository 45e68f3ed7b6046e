"""Flash devices: geometry, flash translation, garbage collection, and the two models that time them."""
