"""Which operators of an original a recipe leaves in float: large contributions, a detector's head."""

from collections.abc import Iterable, Sequence

from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.errors import ModelError
from edgeflare.explanation import stored_explanation
from edgeflare.models.tensors.graph import Operator
from edgeflare.models.tensors.layers import WEIGHTED
from edgeflare.models.tensors.open import open_graph
from edgeflare.store import Store
from edgeflare.words import repair

HEAD_SPLIT = "int8-head-split"
"""The recipe with what comes after a detector's last weights in float."""
HEAD_FLOAT = "int8-head-float"
"""The recipe with the last weights in float, too."""
HEADS = {HEAD_SPLIT: "head", HEAD_FLOAT: "head, weights"}
"""What is in float by the recipes of heads."""


def largest_layers(
    config: CampaignConfig, store: Store, count: int
) -> tuple[list[tuple[str, tuple[str, ...]]], str]:
    """Return the layers with the largest contributions, the largest first, and why there are none.

    Each has the tensors that its operators make.
    """
    if not count:
        return [], ""
    explanation = stored_explanation(store)
    if explanation is None:
        return [], repair.NOT_EXPLAINED.format(store.folder)
    known = explanation.layers
    if known is None or not known.layers:
        return [], repair.NO_LAYERS
    if known.original != config.original.path.name:
        return [], repair.LAYERS_OF_ANOTHER.format(known.original, config.original.path.name)
    about = store.models["original"]
    graph = open_graph(config.original.path, about["runtime"]["name"], {}, about["output"]["name"])
    makers = {name: one for one in graph.operations for name in one.outputs}
    ends = {name for layer in known.layers for name in layer.name.split(", ")}
    found: list[tuple[str, tuple[str, ...]]] = []
    kept: set[str] = set()
    for layer in sorted(known.layers, key=lambda one: -one.mean):
        if layer.mean <= 0 or len(found) == count:
            break
        tensors: list[str] = []
        left = layer.name.split(", ")
        while left:
            name = left.pop()
            if name in makers and name not in tensors:
                tensors += [one for one in makers[name].outputs if one not in tensors]
                left += [one for one in makers[name].inputs if one not in ends]
        kept.update(tensors)
        if 2 * len(kept) > len(makers):  # of another network: it stands for all before it
            return found, repair.TOO_MUCH.format(layer.name)
        if tensors:
            found.append((layer.name, tuple(tensors)))
    return found, ""


def detector_heads(config: CampaignConfig, store: Store) -> tuple[dict[str, tuple[str, ...]], str]:
    """Return the tensors in float by each recipe for heads, and why there are none.

    A detector's boxes and scores often leave its last operators as one tensor. With one scale for
    all of it, which the largest box sets, few levels are left for scores from 0 to 1.
    """
    runtime = store.models["original"]["runtime"]["name"]
    try:
        graph = open_graph(config.original.path, runtime, {})
    except ModelError as error:
        return {}, repair.NO_HEAD.format(error)
    after, last = head_of(graph.operations)
    heads = {HEAD_SPLIT: _made_by(after), HEAD_FLOAT: _made_by([*last, *after])}
    return {name: tensors for name, tensors in heads.items() if after and tensors}, ""


def head_of(operations: Sequence[Operator]) -> tuple[list[Operator], list[Operator]]:
    """Return the operators after the last ones with weights, and those last ones.

    Neither leads to an operator with weights (`WEIGHTED`). `operations` are in the order in which
    they run.
    """
    needed: set[str] = set()
    after, last = [], []
    for one in reversed(operations):
        if not needed.isdisjoint(one.outputs):
            needed.update(one.inputs)
        elif one.kind in WEIGHTED:
            needed.update(one.inputs)
            last.append(one)
        else:
            after.append(one)
    return after[::-1], last[::-1]


def _made_by(operations: Iterable[Operator]) -> tuple[str, ...]:
    return tuple(name for one in operations for name in one.outputs)
