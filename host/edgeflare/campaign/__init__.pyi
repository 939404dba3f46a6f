# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .api import (
    SearchResult as SearchResult,
    Trigger as Trigger,
    find_inputs as find_inputs,
    resume_campaign as resume_campaign,
    run_campaign as run_campaign,
    search as search,
    survey_alone as survey_alone,
)
from .context import CampaignOptions as CampaignOptions, RunOptions as RunOptions
from .seeds import write_calibration as write_calibration
from .comparison import (
    CandidateRun as CandidateRun,
    Candidates as Candidates,
    Measure as Measure,
    candidates_named as candidates_named,
    run_candidates as run_candidates,
)
from .context import RunContext as RunContext
from .control import (
    SelfTest as SelfTest,
    SelfTestPair as SelfTestPair,
    run_selftest as run_selftest,
)
from .events import (
    BatchProgress as BatchProgress,
    Event as Event,
    FleetStatus as FleetStatus,
    Notice as Notice,
    Progress as Progress,
    Stage as Stage,
    Step as Step,
)
from .executor import Cluster as Cluster
from .pair.input_finder import (
    FoundInputs as FoundInputs,
    InputPair as InputPair,
    ModelFeed as ModelFeed,
)
from .replay.reproduce import (
    Reproduction as Reproduction,
    TopScore as TopScore,
    reproduce as reproduce,
)
from .replay.results import (
    ReplayState as ReplayState,
    ReplayedInput as ReplayedInput,
    replay_config as replay_config,
)
from .replay.run import replay_base as replay_base, run_replay as run_replay
from .settings.config import (
    CampaignConfig as CampaignConfig,
    config_from as config_from,
    load_config as load_config,
)
from .settings.fleet import FleetConfig as FleetConfig
from .settings.flags import SettingFlag as SettingFlag, flags_of as flags_of
from .settings.limits import LimitsConfig as LimitsConfig
from .settings.survey import SurveyConfig as SurveyConfig
from .settings.templates import demo_config as demo_config, write_starter as write_starter
from .status import CampaignStatus as CampaignStatus, campaign_status as campaign_status
from .survey.inputs import SurveyInputs as SurveyInputs
