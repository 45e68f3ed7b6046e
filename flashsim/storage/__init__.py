"""Relations, pages and files: what lies on a device, where it lies, and where it comes from."""
