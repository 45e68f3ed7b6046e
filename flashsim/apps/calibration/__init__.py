"""Models and real devices: what a device is measured to do, presets fitted to it, and models held against measurements."""

COMMANDS = {
    "device": {
        "new": "face.device_new:device_new",
        "import-diskspecs": "face.device_import_diskspecs:device_import_diskspecs",
        "bench": "face.bench:bench",
        "calibrate": "face.calibrate:calibrate",
        "identify": "face.identify:identify",
    },
    "settings": "face.settings:settings",
    "validate": {"hdd": "face.compare:validate_hdd", "joins": "face.compare:compare", "ssd": "face.validate:validate"},
}
GROUPS = {
    "validate": """
        Compare simulated with measured devices.
        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace
        flashsim validate ssd --claim first --scale 0.1
        """,
}
