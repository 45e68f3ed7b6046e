"""Pages, files, relations and volumes: what lies on a device."""
