# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .activations import (
    Activations as Activations,
    activations_of as activations_of,
    default_layers as default_layers,
    model_digest as model_digest,
    penultimate_layer as penultimate_layer,
    predicted_class as predicted_class,
)
from .coverage_campaign import (
    CRITERIA as CRITERIA,
    TRACES as TRACES,
    CoverageFound as CoverageFound,
    CriterionCoverage as CriterionCoverage,
    CriterionEntry as CriterionEntry,
    coverage_of_campaign as coverage_of_campaign,
    stored_coverage as stored_coverage,
)
from .coverage import (
    KMNC as KMNC,
    NBC as NBC,
    NC as NC,
    SNAC as SNAC,
    TKNC as TKNC,
    CoverageCriterion as CoverageCriterion,
    UnitCriterion as UnitCriterion,
)
from .importance import (
    IDC as IDC,
    LayerImportance as LayerImportance,
    Movement as Movement,
    cluster_centroids as cluster_centroids,
    importance_of_layers as importance_of_layers,
    important_units as important_units,
    silhouette as silhouette,
)
from .importance_campaign import (
    ImportanceFound as ImportanceFound,
    RelevantPixels as RelevantPixels,
    importance_of_campaign as importance_of_campaign,
    stored_importance as stored_importance,
)
from .priority import (
    PRIORITY_MEASURES as PRIORITY_MEASURES,
    InspectedOriginal as InspectedOriginal,
    drift_priorities as drift_priorities,
    gini as gini,
    order_of as order_of,
    priorities as priorities,
    rarity_priorities as rarity_priorities,
    surprise_priorities as surprise_priorities,
)
from .priority_campaign import (
    FindingsComparison as FindingsComparison,
    PriorityComparison as PriorityComparison,
    PriorityFigures as PriorityFigures,
    apfd as apfd,
    found_within as found_within,
    prioritise_campaign as prioritise_campaign,
)
from .relevance import (
    RelevanceModel as RelevanceModel,
    Relevances as Relevances,
    check_traceable as check_traceable,
    most_relevant as most_relevant,
    relevance_map as relevance_map,
    total_relevance as total_relevance,
    without_relevant as without_relevant,
)
from .stored import SetCounts as SetCounts, SetShares as SetShares, Tell as Tell
from .surprise import DSC as DSC, LSC as LSC, SurpriseCriterion as SurpriseCriterion
from .activations import pre_activation_layers as pre_activation_layers
from .classes.campaign import (
    ClassesFound as ClassesFound,
    DecisionTable as DecisionTable,
    ExampleSeed as ExampleSeed,
    SuspectPair as SuspectPair,
    classes_of_campaign as classes_of_campaign,
    stored_classes as stored_classes,
)
from .classes.deployment import (
    LEVEL as LEVEL,
    BiasChange as BiasChange,
    ClassChange as ClassChange,
    DeploymentComparison as DeploymentComparison,
    ChangeInterval as ChangeInterval,
    PairChange as PairChange,
    compare_deployment as compare_deployment,
    decisions as decisions,
    tarone_holm as tarone_holm,
)
from .classes.evaluation import (
    CostEffectiveness as CostEffectiveness,
    MeasureEvaluation as MeasureEvaluation,
    PairDetection as PairDetection,
    cost_effectiveness as cost_effectiveness,
    detected as detected,
    evaluate_measure as evaluate_measure,
    top_share_of as top_share_of,
    outlying as outlying,
    spearman as spearman,
)
from .classes.pairs import (
    ActivationProbabilities as ActivationProbabilities,
    napvd as napvd,
    Pairs as Pairs,
    avg_bias as avg_bias,
    avg_cd as avg_cd,
    both_directions as both_directions,
    directional_leak as directional_leak,
    directional_type1_confusion as directional_type1_confusion,
    directional_type2_confusion as directional_type2_confusion,
    memberships as memberships,
    near_distance as near_distance,
    pair_values as pair_values,
    class_pairs as class_pairs,
)
from .units.campaign import (
    UNIT_INPUTS as UNIT_INPUTS,
    UNSELECTED as UNSELECTED,
    HypothesisScores as HypothesisScores,
    LayerScore as LayerScore,
    UnitsFound as UnitsFound,
    stored_units as stored_units,
    units_of_campaign as units_of_campaign,
)
from .units.hypotheses import (
    Hypothesis as Hypothesis,
    InputRecord as InputRecord,
    built_in_hypothesis as built_in_hypothesis,
)
from .units.inspection import (
    UnitScore as UnitScore,
    UnitScores as UnitScores,
    inspect_units as inspect_units,
)
from .units.measures import MEASURES as MEASURES, Scores as Scores
from .words.names import SAMPLE_HYPOTHESES as SAMPLE_HYPOTHESES
