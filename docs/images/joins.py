"""Draws ``joins.svg`` of README: where the time of four joins goes on three devices, ``python docs/images/joins.py [SCALE]``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

import flashsim as fs
from flashsim.experiments.presentation.plots import COLOURS

JOINS = ("bnl", "sort-merge", "grace-hash", "hybrid-hash")
DEVICES = {
    "seagate-barracuda-7200.12": "hard disk\nBarracuda\n7200.12",
    "mtron-msd-sata3025-16gb": "SATA SSD\nof 2008\nMtron 3025",
    "samsung-980-pro-1tb": "NVMe SSD\nSamsung\n980 PRO",
}
IO, CPU = COLOURS[0]


def draw(scale: float) -> Figure:
    """Bars of I/O and CPU time as shares of each join's time, with the formula's I/O time as dots."""
    figure = Figure((7.6, 5.4), layout="constrained")
    axes, marks, place = figure.subplots(), [], 0.0
    relations = (f"do2009:customer@{scale:g}", f"do2009:orders@{scale:g}", "c_custkey=o_custkey")
    times = {
        join: fs.join(
            *relations, algorithm=join, device=[*DEVICES], memory=f"{max(1, round(10 * scale))}MiB", cpu="epyc-7003-2021"
        ).summary()
        for join in JOINS
    }
    for number, label in enumerate(DEVICES.values()):
        axes.text(-0.28, place + 1.5, label, transform=axes.get_yaxis_transform(), ha="center", va="center", fontsize=10)
        for join in JOINS:
            row = times[join].iloc[number]
            io, formula = 100 * row.io_s / row.total_s, 100 * row.formula_io_s / row.total_s
            axes.barh(place, io, 0.8, color=IO, label="I/O, simulated" if not place else None)
            axes.barh(place, 100 - io, 0.8, io, color=CPU, label="CPU, simulated" if not place else None)
            axes.plot(formula, place, "o", color="black", markersize=5, label="I/O, formula (Haas et al. 1997)" if not place else None)
            axes.annotate(f"{row.total_s:.2g} s", (101, place), va="center", fontsize=9)
            marks.append((place, join))
            place += 1
        place += 0.8
    axes.set_yticks([each for each, _ in marks], [join for _, join in marks])
    axes.set_xlabel("time (% of the join's simulated time, which stands beside its bar)")
    axes.set_title("Where the time of a join goes: I/O or CPU, by algorithm and device", loc="left", x=-0.35)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


if __name__ == "__main__":
    matplotlib.rcParams |= {"svg.hashsalt": "flashsim", "svg.fonttype": "path"}
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).with_suffix(".svg")
    draw(float(sys.argv[1]) if len(sys.argv) > 1 else 0.1).savefig(target, metadata={"Date": None}, facecolor="white")
