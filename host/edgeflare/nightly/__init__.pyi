# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .config import (
    KeepConfig as KeepConfig,
    NightlyConfig as NightlyConfig,
    NightlyModel as NightlyModel,
    load_nightly as load_nightly,
)
from .night import (
    Check as Check,
    Identity as Identity,
    Night as Night,
    NightRun as NightRun,
    ReplayCounts as ReplayCounts,
    SearchFigures as SearchFigures,
)
from .reports import night_document as night_document, state_word as state_word
from .run import accept_night as accept_night, run_nightly as run_nightly
