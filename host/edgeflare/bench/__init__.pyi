# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .cell_figures import (
    CellFigures as CellFigures,
    Costs as Costs,
    FalseAlarms as FalseAlarms,
    FrontStep as FrontStep,
)
from .cells import Bench as Bench, Cell as Cell, open_bench as open_bench
from .comparisons import Comparison as Comparison, Correlation as Correlation
from .document import bench_summary as bench_summary
from .made_models import perturb_weights as perturb_weights
from .report import BenchReport as BenchReport, bench_report as bench_report
from .run import resume_bench as resume_bench, run_bench as run_bench
from .searches import SearchRow as SearchRow
from .suite import (
    Suite as Suite,
    SuiteAbout as SuiteAbout,
    load_suite as load_suite,
    suite_about as suite_about,
    suite_names as suite_names,
)
from .writing import write_report as write_report
