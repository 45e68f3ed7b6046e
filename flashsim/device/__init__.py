"""The face of every device: presets, the block layer, and the calls that all above uses."""
