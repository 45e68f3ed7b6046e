# What type checkers and editors see of the lazy names in __init__.py: a line a module of the folders `face`.
from flashsim.apps.caching.face.cache import cache as cache
from flashsim.apps.caching.face.cache import cache_compare as cache_compare
from flashsim.apps.caching.face.cache import cache_curve as cache_curve
from flashsim.apps.caching.face.cache import cache_keep as cache_keep
from flashsim.apps.calibration.face.bench import bench as bench
from flashsim.apps.calibration.face.calibrate import calibrate as calibrate
from flashsim.apps.calibration.face.compare import compare as compare
from flashsim.apps.calibration.face.compare import validate_hdd as validate_hdd
from flashsim.apps.calibration.face.device_import_diskspecs import device_import_diskspecs as device_import_diskspecs
from flashsim.apps.calibration.face.device_new import device_new as device_new
from flashsim.apps.calibration.face.identify import identify as identify
from flashsim.apps.calibration.face.settings import settings as settings
from flashsim.apps.calibration.face.validate import validate as validate
from flashsim.apps.labs.face.labs import lab_check as lab_check
from flashsim.apps.labs.face.labs import lab_grade as lab_grade
from flashsim.apps.labs.face.labs import lab_leaderboard as lab_leaderboard
from flashsim.apps.labs.face.labs import lab_start as lab_start
from flashsim.apps.labs.face.labs import labs as labs
from flashsim.apps.papers.face.papers import papers as papers
from flashsim.apps.papers.face.reproduce import reproduce as reproduce
from flashsim.apps.programs.face.advise import advise as advise
from flashsim.apps.programs.face.fleet import fleet as fleet
from flashsim.apps.programs.face.record import crash as crash
from flashsim.apps.programs.face.record import record as record
from flashsim.apps.programs.face.stores import stores as stores
from flashsim.apps.serving.command import device_serve as device_serve
from flashsim.apps.smart.face.smart import smart as smart
from flashsim.apps.watching.face.tiny_drive import tiny_drive as tiny_drive
from flashsim.apps.watching.face.watch import watch as watch
from flashsim.operations.face.algorithms import algorithms as algorithms
from flashsim.operations.face.algorithms import cache_list as cache_list
from flashsim.operations.face.algorithms import pool_list as pool_list
from flashsim.operations.face.check import check as check
from flashsim.operations.face.devices import device_list as device_list
from flashsim.operations.face.devices import device_show as device_show
from flashsim.operations.face.devices import devices as devices
from flashsim.operations.face.doctor import doctor as doctor
from flashsim.operations.face.drive import drive as drive
from flashsim.operations.face.export import export as export
from flashsim.operations.face.fetch import fetch as fetch
from flashsim.operations.face.join import join as join
from flashsim.operations.face.pool import pool as pool
from flashsim.operations.face.pool_crash import pool_crash as pool_crash
from flashsim.operations.face.replay import replay as replay
from flashsim.operations.face.restart import restart as restart
from flashsim.operations.face.sweep import sweep as sweep
from flashsim.operations.face.trace import trace as trace
from flashsim.operations.face.trace import trace_convert as trace_convert
from flashsim.operations.face.trace import trace_list as trace_list
from flashsim.operations.face.why import why as why

# Commands that have a shorter name as well.
cache_simulate = cache
device_bench = bench
device_calibrate = calibrate
device_identify = identify
lab_list = labs
pool_restart = restart
pool_run = pool
smart_run = smart
trace_info = trace
trace_replay = replay
validate_joins = compare
validate_ssd = validate

__version__: str
