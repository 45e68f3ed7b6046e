"""An array of equal disks as one device, striped: compiled, and told in Python."""
