# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .agreement import (
    Agreement as Agreement,
    Compared as Compared,
    DeviceCluster as DeviceCluster,
    EveryDevice as EveryDevice,
    FingerprintDifference as FingerprintDifference,
    OneSided as OneSided,
    agreements as agreements,
    clusters as clusters,
)
from .base import (
    Analysis as Analysis,
    RunContext as RunContext,
    WithUnitScores as WithUnitScores,
    analysis as analysis,
    analysis_names as analysis_names,
    run_analysis as run_analysis,
    sections_of as sections_of,
    stored_sections as stored_sections,
)
from .class_names import class_namer as class_namer, load_class_names as load_class_names
from .summary import ControlFigures as ControlFigures
from .corpus import (
    CorpusAddition as CorpusAddition,
    CorpusPair as CorpusPair,
    CorpusSummary as CorpusSummary,
    CorpusTarget as CorpusTarget,
    add_to_corpus as add_to_corpus,
    corpus_summary as corpus_summary,
    note_replay as note_replay,
    remove_from_corpus as remove_from_corpus,
)
from .data_frames import Frames as Frames, to_frames as to_frames
from .devices import (
    DeviceFigures as DeviceFigures,
    TelemetryFigures as TelemetryFigures,
    Transfer as Transfer,
)
from .limits import LimitCheck as LimitCheck, check_limits as check_limits
from .outcome_stats import (
    Failure as Failure,
    LabelPair as LabelPair,
    Spread as Spread,
    TriggerFigures as TriggerFigures,
    WordPair as WordPair,
)
from .ranking.candidates import (
    CompareSettings as CompareSettings,
    Comparison as Comparison,
    rank_candidates as rank_candidates,
    run_models as run_models,
)
from .ranking.paired_tests import Duel as Duel
from .ranking.ranking import (
    RankedModel as RankedModel,
    Ranking as Ranking,
    rank_campaigns as rank_campaigns,
)
from .ranking.scores import (
    Accuracy as Accuracy,
    Estimate as Estimate,
    ModelFigures as ModelFigures,
)
from .replay import (
    ReplayFigures as ReplayFigures,
    ReplaySummary as ReplaySummary,
    replay_summary as replay_summary,
)
from .campaign_verdict import (
    campaign_soundness as campaign_soundness,
    check_healthy as check_healthy,
)
from .soundness import (
    OwnFigures as OwnFigures,
    Soundness as Soundness,
    SurveyScores as SurveyScores,
    judge as judge,
)
from .faults import (
    Fault as Fault,
    FaultFigures as FaultFigures,
    FaultPair as FaultPair,
    FaultThreshold as FaultThreshold,
    fault_figures as fault_figures,
)
from .survey import (
    CellCounts as CellCounts,
    DeviceRate as DeviceRate,
    FamilyFigures as FamilyFigures,
    Rate as Rate,
    SeverityFigures as SeverityFigures,
    SurveyFigures as SurveyFigures,
    SurveyedInput as SurveyedInput,
    survey_figures as survey_figures,
)
from .summary import Summary as Summary, summarize as summarize
