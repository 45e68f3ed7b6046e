"""The face of all devices: presets, the block layer, and the drive behind it."""
