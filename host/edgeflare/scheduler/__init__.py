"""The scheduler: many search jobs on one original model and several devices; the only concurrent part of a search."""

from edgeflare.scheduler.device_queue import Deployed
from edgeflare.scheduler.job import (
    Budget,
    Counters,
    Feed,
    FleetLimits,
    Job,
    JobRun,
    SingleQueryJob,
    SingleQueryResult,
)
from edgeflare.scheduler.scheduler import Original, Scheduler
from edgeflare.scheduler.search_job import SearchJob, SearchJobResult, SearchSettings, chain_seed

__all__ = [
    "Budget",
    "Counters",
    "Deployed",
    "Feed",
    "FleetLimits",
    "Job",
    "JobRun",
    "Original",
    "Scheduler",
    "SearchJob",
    "SearchJobResult",
    "SearchSettings",
    "SingleQueryJob",
    "SingleQueryResult",
    "chain_seed",
]
