"""Labs for courses: what students write is tried on instances that are drawn from a seed, in a process of its own."""

COMMANDS = {
    "lab": {
        "list": "face.labs:labs",
        "start": "face.labs:start",
        "check": "face.labs:check",
        "grade": "face.labs:grade",
        "leaderboard": "face.labs:leaderboard",
    },
}
GROUPS = {
    "lab": """
        Labs for courses: notebooks, checks, marks on fresh instances, and contests.

        Examples::

            flashsim lab list
            flashsim lab start replacement
            flashsim lab check replacement.ipynb
            flashsim lab grade replacement_ada.ipynb --out marks.csv
        """,
}
