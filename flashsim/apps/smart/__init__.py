"""Queries on a drive with an inside: SQL, its plan, where its operators run, and how long that takes."""

COMMANDS = {"smart": {"run": "face.smart:smart"}}
GROUPS = {
    "smart": """
        Queries on drives that run programs: what runs inside, what on the host, and how long it takes.
        flashsim smart run "SELECT avg(o_totalprice) FROM o" \
                --table o=tpch:orders@0.01 --device samsung-smart-400gb
        """,
}
