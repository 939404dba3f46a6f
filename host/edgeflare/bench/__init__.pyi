# The names that other parts use; read at run time, too.
# ruff: noqa: I001 - one import a part

from .cell_figures import (
    CellFigures as CellFigures,
)
from .cells import (
    Cell as Cell,
)
from .comparisons import (
    Comparison as Comparison,
    Correlation as Correlation,
)
from .costs import (
    Costs as Costs,
)
from .document import (
    bench_summary as bench_summary,
)
from .false_alarms import (
    FalseAlarms as FalseAlarms,
)
from .fronts import (
    FrontStep as FrontStep,
)
from .opening import (
    Bench as Bench,
    open_bench as open_bench,
)
from .perturb import (
    perturb_weights as perturb_weights,
)
from .report import (
    BenchReport as BenchReport,
    bench_report as bench_report,
)
from .rows import (
    SearchRow as SearchRow,
)
from .run import (
    resume_bench as resume_bench,
    run_bench as run_bench,
)
from .suite import (
    Suite as Suite,
    SuiteAbout as SuiteAbout,
    load_suite as load_suite,
    suite_about as suite_about,
    suite_names as suite_names,
)
from .writing import (
    write_report as write_report,
)
