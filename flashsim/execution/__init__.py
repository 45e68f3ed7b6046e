"""What algorithms yield, and the drivers that do it: in virtual time, on a real file, or only counted."""
