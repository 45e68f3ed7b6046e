"""Queries on a drive with an inside: SQL, its plan, where its operators run, and how long that takes."""

COMMANDS = {"smart": {"run": "face.smart:smart"}}
GROUPS = {
    "smart": """
        Run queries inside a Smart SSD.
        flashsim smart run "SELECT avg(o_totalprice) FROM o" \
                --table o=tpch:orders@0.01 --device samsung-smart-400gb
        """,
}
