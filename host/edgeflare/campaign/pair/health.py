"""Whether the answers of both models can be used at all, as far as a campaign's store tells.

A model whose answers are constant, tied, not finite, or others each time, agrees or deviates by
chance: nothing that was counted with such answers may be taken for agreement.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.answers.metrics import is_finite, is_same, is_same_answer
from edgeflare.answers.oracles import certainty, margin
from edgeflare.campaign.status import replica_names
from edgeflare.store import Store
from edgeflare.store.state import AnswersChecked
from edgeflare.types import TRIGGERS, Decision, Issue, Output, Outputs
from edgeflare.words.preflight import sentence

SEEDS_REPEATED = 3
"""A model that draws random numbers answers otherwise on nearly every input, so that few tell."""

UnusableKind: TypeAlias = Literal["not-repeatable", "non-finite", "constant", "tied"]
ModelName: TypeAlias = Literal["deployed", "original"]
MODELS: tuple[ModelName, ...] = ("deployed", "original")

_FEWEST_INPUTS = 4
"""By as many inputs at least a model is called constant, tied or not finite: of constant ones by as
many different ones."""
_SATURATED = 0.98
"""From this certainty on, rounding to 8 bits makes equal answers to inputs of one class usual."""
_CONSTANT_DEVIATIONS = 0.25
"""As large a share of the inputs must then deviate: seeds of one class alone would not."""
_FEWEST_DEVIATIONS = 3
_FEWEST_UNSTABLE = 2
_CLEAR_MARGIN = 0.05
"""A search ends right beside the original's boundary, where rounding alone may turn a decision: an
unstable finding with a smaller margin of the deployed model shows nothing of that, nor does another
decision on a seed."""


@dataclass(frozen=True)
class UnusableAnswers(JsonRecord):
    """Why the answers of one `model`, the deployed model or the original, can't be used.

    `kind`: "not-repeatable": it answers otherwise to the same input; "non-finite": with NaN or
    infinity; "constant": the same to all inputs; "tied": several classes share its highest score.
    So it does on `inputs` of `of` inputs; of constant and not repeatable answers these are
    different inputs, and inputs that were sent again. `replica`: the device, of a fleet in which
    each searches for itself.
    """

    kind: UnusableKind
    model: ModelName
    inputs: int
    of: int
    replica: str = ""

    @in_json
    def words(self) -> str:
        """One sentence without its full stop, which begins in lower case."""
        return sentence(self.issue)

    @property
    def issue(self) -> Issue:
        """What a preflight says of it."""
        data = asdict(self)
        return Issue(data.pop("kind"), "warning", data)


def unusable_answers(store: Store) -> tuple[UnusableAnswers, ...]:
    """Return why answers of a campaign can't be used, the most important reason first; mostly none.

    There is one reason at most for each model on each replica. Raises StoreError.
    """
    found = [
        problem
        for replica in replica_names(store)
        for model in MODELS
        if (problem := _unusable(store, replica, model)) is not None
    ]
    order: tuple[UnusableKind, ...] = ("not-repeatable", "non-finite", "constant", "tied")
    return tuple(sorted(found, key=lambda one: order.index(one.kind)))


def ranking_problem(store: Store) -> UnusableAnswers | None:
    """Return why a campaign can't be ranked among others, None where it can: such a model would be
    hard to make deviate. NaN or infinity counts as the worst answer. Raises StoreError."""
    return next((one for one in unusable_answers(store) if one.kind != "non-finite"), None)


def _unusable(store: Store, replica: str, model: ModelName) -> UnusableAnswers | None:
    return (
        _not_repeatable(store, replica, model)
        or _mostly(Decision.NONFINITE, "non-finite", store, replica, model)
        or _constant(store, replica, model)
        or _mostly(Decision.TIE, "tied", store, replica, model)
    )


def _not_repeatable(store: Store, replica: str, model: ModelName) -> UnusableAnswers | None:
    """Judge by the seeds that were asked about again, and by the findings that did not repeat."""
    repeated = _checked(store, replica).repeated or {"deployed": 0, "original": 0}
    if others := repeated[model]:
        return UnusableAnswers("not-repeatable", model, others, repeated.get("seeds", 0), replica)
    mixed = (store.campaign.get("fleet") or {}).get("allow_mixed")
    if model == "original" or repeated["original"] or mixed:  # what makes findings unstable
        return None
    statuses = store.columns.statuses(replica)
    unstable = store.columns.unstable(_CLEAR_MARGIN, replica)
    findings = unstable + sum(statuses[one.value] for one in TRIGGERS)
    if unstable < max(_FEWEST_UNSTABLE, findings / 2):
        return None
    return UnusableAnswers("not-repeatable", model, unstable, findings, replica)


def _mostly(
    decision: Decision, kind: UnusableKind, store: Store, replica: str, model: ModelName
) -> UnusableAnswers | None:
    """Judge by the seeds and the survey: whether this is the decision on most inputs.

    Not by a replay's inputs, which are there because they lie beside a boundary, or gave no number.
    """
    decisions = store.columns.decisions(replica)
    count, total = decisions[decision.value], decisions.total()
    if total < _FEWEST_INPUTS or 2 * count <= total or store.state.is_replay:
        return None
    if _model_of(store, replica, decision) != model:
        return None
    return UnusableAnswers(kind, model, count, total, replica)


def _model_of(store: Store, replica: str, decision: Decision) -> ModelName:
    """Return which model makes answers ties, or not finite: the deployed one where both do."""
    with closing(_seed_answers(store, replica)) as answers:
        for outputs, _ in answers:
            if outputs.decision is not decision or outputs.deployed is None:
                continue
            deployed = outputs.deployed
            usable = is_finite(deployed) and (decision is Decision.NONFINITE or margin(deployed))
            return "original" if usable else "deployed"
    return "deployed"


def count_constant(store: Store, replica: str, model: ModelName) -> int:
    """Return to how many different seeds a model gives answers that are equal to the bit, 0: not all.

    Most models end this with the second seed. Equal answers that are sure of one class are usual
    where all seeds are of that class, the more so of 8 bits: they count where the other model
    decides otherwise on a quarter of the seeds. Of a replay they never count, nor does hearing
    no word: its inputs are there because they deviate.
    """
    first: Output | None = None
    inputs: set[str] = set()
    deviations: set[str] = set()
    with closing(_seed_answers(store, replica)) as answers:
        for outputs, sample in answers:
            answer = outputs.deployed if model == "deployed" else outputs.original
            if answer is None:
                continue
            if first is not None and not is_same(answer, first):
                return 0
            first = answer
            inputs.add(sample)
            if outputs.decision is Decision.DEVIATION:
                deviations.add(sample)
    if first is None or len(inputs) < _FEWEST_INPUTS:
        return 0
    sure = certainty(first)
    if store.state.is_replay:
        return len(inputs) if sure is not None and sure < _SATURATED else 0
    least = max(_FEWEST_DEVIATIONS, _CONSTANT_DEVIATIONS * len(inputs))
    if sure is not None and sure >= _SATURATED and len(deviations) < least:
        return 0
    return len(inputs)


def is_other_answer(before: Output, now: Output) -> bool:
    """Whether a model answers otherwise to the same input, by more than rounding can change.

    Beside a boundary rounding alone may turn the decision: there the numbers tell.
    """
    ahead = margin(before)
    return not is_same_answer(before, now, is_clear=ahead is None or ahead >= _CLEAR_MARGIN)


def _constant(store: Store, replica: str, model: ModelName) -> UnusableAnswers | None:
    """Judge by the seeds, as the campaign found it, and by the answers to the findings."""
    constant = _checked(store, replica).constant
    count = 0 if constant is None else constant[model]
    if not count:
        return None
    with closing(_seed_answers(store, replica)) as answers:
        of_seeds = next(answers, (None, ""))[0]
    if of_seeds is None:
        return None
    first = of_seeds.deployed if model == "deployed" else of_seeds.original
    for outcome in store.outcomes_of(replica):
        answer = outcome.deployed if model == "deployed" else outcome.original
        if first is not None and answer is not None and not is_same(answer, first):
            return None
    return UnusableAnswers("constant", model, count, count, replica)


def _checked(store: Store, replica: str) -> AnswersChecked:
    return store.state.answers_checked.get(replica, AnswersChecked())


def _seed_answers(store: Store, replica: str) -> Generator[tuple[Outputs, str], None, None]:
    """Yield the answers to the seeds, and the digests of their samples."""
    for seed in store.seeds(replica):
        if seed.outputs is not None:
            yield seed.outputs, seed.sample
