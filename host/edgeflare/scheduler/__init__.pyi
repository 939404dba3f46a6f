# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .device_queue import Deployed as Deployed
from .job import (
    Budget as Budget,
    Counters as Counters,
    Feed as Feed,
    FleetLimits as FleetLimits,
    Job as Job,
    JobRun as JobRun,
    SingleQueryJob as SingleQueryJob,
    SingleQueryResult as SingleQueryResult,
)
from .scheduler import Original as Original, Scheduler as Scheduler
from .search_job import (
    SearchJob as SearchJob,
    SearchJobResult as SearchJobResult,
    SearchSettings as SearchSettings,
    chain_seed as chain_seed,
)
from .survey_job import (
    SurveyAnswer as SurveyAnswer,
    SurveyJob as SurveyJob,
    SurveyResult as SurveyResult,
)
