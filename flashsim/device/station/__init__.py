"""A queueing station: a device that is nothing but servers with given rates behind one queue."""
