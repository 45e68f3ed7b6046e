"""Programs of the user's own: what they ask of files, recorded, what a power cut leaves of it, and which drive suits it."""

COMMANDS = {
    "record": "face.record:record",
    "advise": "face.advise:advise",
    "fleet": "face.fleet:fleet",
    "crash": "face.record:crash",
    "stores": "face.stores:stores",
}
