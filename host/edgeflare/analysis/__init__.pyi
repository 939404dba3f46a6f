# The names that other parts use; read at run time, too.
# ruff: noqa: I001 - one import a part

from .agreement import (
    Agreement as Agreement,
    Compared as Compared,
    EveryDevice as EveryDevice,
    OneSided as OneSided,
)
from .class_names import (
    load_class_names as load_class_names,
)
from .control import (
    ControlFigures as ControlFigures,
)
from .corpus import (
    CorpusAddition as CorpusAddition,
    add_to_corpus as add_to_corpus,
    note_replay as note_replay,
    remove_from_corpus as remove_from_corpus,
)
from .corpus_figures import (
    CorpusPair as CorpusPair,
    CorpusSummary as CorpusSummary,
    CorpusTarget as CorpusTarget,
    corpus_summary as corpus_summary,
)
from .devices import (
    DeviceFigures as DeviceFigures,
    Transfer as Transfer,
)
from .export import (
    ExportReport as ExportReport,
    export_campaign as export_campaign,
)
from .figures import (
    Failure as Failure,
    LabelPair as LabelPair,
    Spread as Spread,
)
from .formats import (
    ReportFormat as ReportFormat,
    report_text as report_text,
)
from .formats.writing import (
    TextReport as TextReport,
    write_text_report as write_text_report,
)
from .frames import (
    Frames as Frames,
    to_frames as to_frames,
)
from .heard import (
    WordPair as WordPair,
)
from .limits import (
    LimitCheck as LimitCheck,
    check_limits as check_limits,
)
from .page.report import (
    HtmlReport as HtmlReport,
    write_html_report as write_html_report,
)
from .ranking import (
    RankedModel as RankedModel,
    Ranking as Ranking,
    rank_campaigns as rank_campaigns,
)
from .ranking_duels import (
    Duel as Duel,
)
from .ranking_models import (
    Accuracy as Accuracy,
    Estimate as Estimate,
    ModelFigures as ModelFigures,
)
from .replayed import (
    ReplayFigures as ReplayFigures,
    ReplaySummary as ReplaySummary,
    replay_summary as replay_summary,
)
from .summary import (
    Summary as Summary,
    summarize as summarize,
)
from .telemetry import (
    TelemetryFigures as TelemetryFigures,
)
from .triggers import (
    TriggerFigures as TriggerFigures,
)
from .unlike import (
    Unlike as Unlike,
)
