# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .abstention import (
    HELD_OUT as HELD_OUT,
    Abstention as Abstention,
    Caught as Caught,
    CurvePoint as CurvePoint,
    abstention_of as abstention_of,
)
from .campaigns import (
    AbstainSettings as AbstainSettings,
    TrainSettings as TrainSettings,
    RepairedCampaign as RepairedCampaign,
    RepairedSearch as RepairedSearch,
    abstain_campaign as abstain_campaign,
    train_campaign as train_campaign,
)
from .examples import Examples as Examples, examples_of as examples_of
from .onnx_stage import onnx_stage as onnx_stage
from .recipes import (
    LATENCY_SLACK_S as LATENCY_SLACK_S,
    LATENCY_TOLERANCE as LATENCY_TOLERANCE,
    PRESENT as PRESENT,
    SIZE_TOLERANCE as SIZE_TOLERANCE,
    ObjectDifferences as ObjectDifferences,
    RecipeFigures as RecipeFigures,
    RecipesFound as RecipesFound,
    RecipesSettings as RecipesSettings,
    recipes_campaign as recipes_campaign,
)
from .search_again import SearchFigures as SearchFigures, check_finished as check_finished
from .training import (
    VARIANTS as VARIANTS,
    FoldFigures as FoldFigures,
    TrainedRepair as TrainedRepair,
    Variant as Variant,
    train_repair as train_repair,
)
