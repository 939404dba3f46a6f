# The public names, each with the part it comes from; read at run time, too.
# ruff: noqa: I001 - one import a part

from ._version import __version__ as __version__

# Models, devices, seeds
from .models import OriginalModel as OriginalModel
from .devices import (
    Device as Device,
    load_inventory as load_inventory,
    open_device as open_device,
    resolve_device as resolve_device,
)
from .seeds import open_seeds as open_seeds

# Search in one call
from .campaign import (
    SearchResult as SearchResult,
    Trigger as Trigger,
    search as search,
)

# Campaigns
from .campaign import (
    CampaignConfig as CampaignConfig,
    Event as Event,
    Notice as Notice,
    campaign_status as campaign_status,
    config_from as config_from,
    load_config as load_config,
    resume_campaign as resume_campaign,
    run_campaign as run_campaign,
)

# Replay, compare, report
from .campaign import (
    replay_base as replay_base,
    replay_config as replay_config,
    run_candidates as run_candidates,
    run_replay as run_replay,
)
from .analysis import (
    Ranking as Ranking,
    Summary as Summary,
    export_campaign as export_campaign,
    rank_campaigns as rank_campaigns,
    report_text as report_text,
    summarize as summarize,
    to_frames as to_frames,
    write_html_report as write_html_report,
)

# Strategies and oracles of one's own
from .oracles import Oracle as Oracle
from .types import (
    Answer as Answer,
    Ask as Ask,
    Decision as Decision,
    Outcome as Outcome,
    Outputs as Outputs,
    Seed as Seed,
    Strategy as Strategy,
)

# Errors
from .errors import (
    DeviceBusyError as DeviceBusyError,
    DeviceError as DeviceError,
    EdgeFlareError as EdgeFlareError,
    ModelError as ModelError,
    PreflightError as PreflightError,
    SeedError as SeedError,
    StoreError as StoreError,
    UsageError as UsageError,
)
