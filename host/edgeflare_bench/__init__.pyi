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
from .everyday.suite import (
    EVERYDAY_ABOUT as EVERYDAY_ABOUT,
    EverydayBench as EverydayBench,
    EverydaySuite as EverydaySuite,
    everyday_suite as everyday_suite,
)
from .faults import (
    FAULTS_ABOUT as FAULTS_ABOUT,
    Evaluated as Evaluated,
    FaultBench as FaultBench,
    FaultSuite as FaultSuite,
    fault_suite as fault_suite,
    is_fault_bench as is_fault_bench,
    open_fault_bench as open_fault_bench,
    resume_faults as resume_faults,
    run_faults as run_faults,
)
from .made_models import perturb_weights as perturb_weights
from .report import BenchReport as BenchReport, bench_report as bench_report
from .reports.document import bench_summary as bench_summary
from .reports.everyday import (
    everyday_document as everyday_document,
    everyday_report as everyday_report,
    write_everyday_report as write_everyday_report,
)
from .reports.faults import (
    fault_document as fault_document,
    fault_report as fault_report,
    write_fault_report as write_fault_report,
)
from .reports.writing import write_report as write_report
from .run import resume_bench as resume_bench, run_bench as run_bench
from .searches import SearchRow as SearchRow
from .suite import (
    Suite as Suite,
    SuiteAbout as SuiteAbout,
    load_suite as load_suite,
    suite_about as suite_about,
    suite_names as suite_names,
)
