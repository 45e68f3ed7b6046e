"""Labs for courses: what students write is tried on instances that are drawn from a seed, in a process of its own."""

COMMANDS = {
    "lab": {
        "list": "face.labs:labs",
        "start": "face.labs:lab_start",
        "check": "face.labs:lab_check",
        "grade": "face.labs:lab_grade",
        "leaderboard": "face.labs:lab_leaderboard",
    },
}
GROUPS = {
    "lab": """
        Course labs: start, check, grade, rank.
        flashsim lab list
        flashsim lab start replacement
        flashsim lab check replacement.ipynb
        flashsim lab grade replacement_ada.ipynb --out marks.csv
        """,
}
