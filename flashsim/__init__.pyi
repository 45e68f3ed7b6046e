# What type checkers and editors see of the lazy names in __init__.py: a line a module of the folders `face`.
from flashsim.apps.labs.face.labs import labs as labs
from flashsim.apps.papers.face.papers import papers as papers
from flashsim.apps.papers.face.reproduce import reproduce as reproduce
from flashsim.apps.programs.face.advise import advise as advise
from flashsim.apps.programs.face.cut_power import cut_power as cut_power
from flashsim.apps.programs.face.fleet import fleet as fleet
from flashsim.apps.programs.face.record import record as record
from flashsim.operations.face.algorithms import algorithms as algorithms
from flashsim.operations.face.bench import bench as bench
from flashsim.operations.face.cache import cache as cache
from flashsim.operations.face.calibrate import calibrate as calibrate
from flashsim.operations.face.check import check as check
from flashsim.operations.face.compare import compare as compare
from flashsim.operations.face.crash import crash as crash
from flashsim.operations.face.devices import devices as devices
from flashsim.operations.face.drive import drive as drive
from flashsim.operations.face.export import export as export
from flashsim.operations.face.fetch import fetch as fetch
from flashsim.operations.face.identify import identify as identify
from flashsim.operations.face.join import join as join
from flashsim.operations.face.lab import lab as lab
from flashsim.operations.face.pool import pool as pool
from flashsim.operations.face.replay import replay as replay
from flashsim.operations.face.restart import restart as restart
from flashsim.operations.face.smart import smart as smart
from flashsim.operations.face.sweep import sweep as sweep
from flashsim.operations.face.trace import trace as trace
from flashsim.operations.face.validate import validate as validate
from flashsim.operations.face.watch import watch as watch

__version__: str
