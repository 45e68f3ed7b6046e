"""Database algorithms that do no I/O themselves: they yield what they want and are answered."""
