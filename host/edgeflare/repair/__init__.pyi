# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .training import TrainedRepair as TrainedRepair, train_repair as train_repair
