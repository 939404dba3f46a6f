# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .catalogue import (
    KINDS as KINDS,
    Draw as Draw,
    draws as draws,
    faulty_model as faulty_model,
    is_reserved as is_reserved,
)
from .evaluation import (
    Evaluation as Evaluation,
    Response as Response,
    SearchResult as SearchResult,
    Surveyed as Surveyed,
    area_under_curve as area_under_curve,
)
from .graph_edit import Inapplicable as Inapplicable, Parameters as Parameters
from .healthy import Healthy as Healthy, healthy_models as healthy_models
from .originals import Original as Original, open_original as open_original
from .suite import (
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
from .witness import Witness as Witness, find_witness as find_witness
