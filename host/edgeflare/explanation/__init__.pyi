# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .results import (
    DEVICE_QUERIES as DEVICE_QUERIES,
    SHRUNK_FOLDER as SHRUNK_FOLDER,
    Distances as Distances,
    ExplainedFinding as ExplainedFinding,
    Explanation as Explanation,
    FindingCause as FindingCause,
    FindingGroup as FindingGroup,
    KindFigures as KindFigures,
    LayerFigures as LayerFigures,
    Layers as Layers,
    Remark as Remark,
    RemarkCode as RemarkCode,
    RungAnswer as RungAnswer,
    ShrunkFinding as ShrunkFinding,
    ShrunkFindings as ShrunkFindings,
    ShrunkTo as ShrunkTo,
    TensorFigures as TensorFigures,
    explained_devices as explained_devices,
    stored_explanation as stored_explanation,
)
from .run import explain_campaign as explain_campaign
from .shrinking import shrink_campaign as shrink_campaign
