# What type checkers and editors see of the lazy names in __init__.py: a line a module of experiments.face.
from experiments.face.algorithms import algorithms as algorithms
from experiments.face.bench import bench as bench
from experiments.face.cache import cache as cache
from experiments.face.calibrate import calibrate as calibrate
from experiments.face.compare import compare as compare
from experiments.face.devices import devices as devices
from experiments.face.drive import drive as drive
from experiments.face.export import export as export
from experiments.face.fetch import fetch as fetch
from experiments.face.join import join as join
from experiments.face.lab import lab as lab
from experiments.face.papers import papers as papers
from experiments.face.pool import pool as pool
from experiments.face.replay import replay as replay
from experiments.face.reproduce import reproduce as reproduce
from experiments.face.sweep import sweep as sweep
from experiments.face.trace import trace as trace
from experiments.face.worth import worth as worth

__version__: str
