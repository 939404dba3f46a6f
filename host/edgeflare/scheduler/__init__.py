"""The scheduler: many search jobs on one original model and several devices; the only concurrent part of a search."""

from edgeflare.scheduler.budget import Budget, Counters, FleetLimits
from edgeflare.scheduler.chain import Chain, ChainResult, Rules, chain_seed
from edgeflare.scheduler.job import Feed, Job, Life
from edgeflare.scheduler.lane import Deployed
from edgeflare.scheduler.questions import Answered, Question
from edgeflare.scheduler.scheduler import Original, Scheduler

__all__ = [
    "Answered",
    "Budget",
    "Chain",
    "ChainResult",
    "Counters",
    "Deployed",
    "Feed",
    "FleetLimits",
    "Job",
    "Life",
    "Original",
    "Question",
    "Rules",
    "Scheduler",
    "chain_seed",
]
