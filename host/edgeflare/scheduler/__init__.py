"""The one place that knows concurrency."""

from edgeflare.scheduler.budget import Budget, Counters
from edgeflare.scheduler.chain import ChainResult, Rules, chain_seed
from edgeflare.scheduler.scheduler import Reply, Scheduler

__all__ = ["Budget", "ChainResult", "Counters", "Reply", "Rules", "Scheduler", "chain_seed"]
