# The public names, each with the part it comes from; read at run time, too.

from .cell_figures import CellFigures as CellFigures
from .cells import Bench as Bench
from .cells import Cell as Cell
from .cells import open_bench as open_bench
from .comparisons import Comparison as Comparison
from .comparisons import Correlation as Correlation
from .costs import Costs as Costs
from .costs import FalseAlarms as FalseAlarms
from .costs import FrontStep as FrontStep
from .document import bench_summary as bench_summary
from .made_models import perturb_weights as perturb_weights
from .report import BenchReport as BenchReport
from .report import bench_report as bench_report
from .run import resume_bench as resume_bench
from .run import run_bench as run_bench
from .searches import SearchRow as SearchRow
from .suite import Suite as Suite
from .suite import SuiteAbout as SuiteAbout
from .suite import load_suite as load_suite
from .suite import suite_about as suite_about
from .suite import suite_names as suite_names
from .writing import write_report as write_report
