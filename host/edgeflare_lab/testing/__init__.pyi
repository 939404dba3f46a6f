# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .fake_agent import FakeAgent as FakeAgent, Replace as Replace, raw_frame as raw_frame
from .fake_model import (
    FakeModel as FakeModel,
    StrategyRun as StrategyRun,
    run_strategy as run_strategy,
)
from .fault_plan import (
    DIRECTIONS as DIRECTIONS,
    Direction as Direction,
    Fault as Fault,
    FaultPlan as FaultPlan,
    KINDS as KINDS,
    Kind as Kind,
)
from .faulty_transport import FaultyTransport as FaultyTransport, connecting as connecting
from .relay import Relay as Relay
