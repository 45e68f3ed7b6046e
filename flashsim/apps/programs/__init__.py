"""Programs of the user's own: what they ask of files, recorded, and what that means on a device."""
