"""The inputs of both models: which one samples become, and whether both take the same samples."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from edgeflare._internal.text import counted, first_of
from edgeflare.answers.interface import ChosenInput, ModelInterface
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.devices import runtime_for
from edgeflare.errors import UsageError
from edgeflare.models import (
    SEED_NAMES,
    AudioSpec,
    InputSpec,
    Spec,
    TensorInfo,
    choose_input,
    known_of,
    resolve_input,
)
from edgeflare.models.image_input import UnknownScalingError
from edgeflare.models.inferred_input import Inference, InputFile, alike, infer_input
from edgeflare.models.input_metadata import BESIDE, InferredInput
from edgeflare.models.usual_inputs import values_of, values_text
from edgeflare.store import Store
from edgeflare.types import Issue
from edgeflare.words import inputs as inputs_words
from edgeflare.words.inputs import pixels_words, source_words, unusable_words
from edgeflare.words.preflight import sentence


def chosen_input(config: ModelConfig, inputs: Sequence[TensorInfo], whose: str) -> ChosenInput:
    """Return which input of a model samples become, as its configuration states it.

    Raises UsageError as `edgeflare.models.choose_input`.
    """
    return choose_input(inputs, config.input_name, config.fixed_inputs, whose, config.input.layout)


def inferred_input(
    config: ModelConfig,
    inputs: Sequence[TensorInfo],
    metadata: Mapping[str, str],
    choice: ChosenInput,
) -> Inference:
    """Return how a model is fed where its configuration doesn't state that. Raises ModelError."""
    names = [tensor.name for tensor in inputs]
    name = choice.tensor.name
    try:
        runtime = config.runtime or runtime_for(config.path)
    except UsageError:
        runtime = ""
    place = names.index(name) if name in names else 0
    file = InputFile(config.path, runtime, choice.tensor, metadata, place, config.options)
    return infer_input(file, config.input)


def resolve_inputs(
    configs: tuple[ModelConfig, ModelConfig],
    tensors: tuple[TensorInfo, TensorInfo],
    inferences: tuple[Inference, Inference],
) -> tuple[tuple[Spec, Spec], tuple[InferredInput | None, InferredInput | None]]:
    """Return how samples enter both models, and what tells it; None: it is stated.

    A scaling that neither is stated nor known of a model is the other one's, since both were made for
    the same inputs. Raises UnknownScalingError, with what would fit, where nothing tells; else UsageError
    and ModelError as `resolve_input`.
    """
    specs: list[Spec] = []
    feeds: list[InferredInput | None] = []
    for place, whose in enumerate(("the original model", "the deployed model")):
        config, own, other = configs[place], inferences[place], inferences[1 - place]
        stated = configs[1 - place].input
        known = known_of(own.options, stated, other.of_both)
        told = own.known
        if told is not None and told.source in BESIDE and stated.has_scaling:
            # a folder's settings are said of no file: what is stated of the pair comes first
            known = own.options.model_copy(update=stated.model_dump(include=_SCALING))
            told = InferredInput("other-model", known)
        elif own.candidates:
            scaling = stated if stated.has_scaling else other.of_both
            fitting = [one for one in own.candidates if alike(one.options, scaling)]
            told = fitting[0] if scaling.has_scaling and fitting else None
            known = own.besides if told is None else told.options
        elif not own.options.has_scaling and not own.options.is_audio:
            told = InferredInput("other-model", known) if known.has_scaling else None
        try:
            specs.append(resolve_input(tensors[place], config.input, known, whose))
        except UnknownScalingError as error:
            raise UnknownScalingError(f"{error}{_candidates_clause(own, other)}") from None
        feeds.append(None if config.input.has_scaling or config.input.is_audio else told)
    return (specs[0], specs[1]), (feeds[0], feeds[1])


_SCALING = {"scale", "mean", "std"}


def _candidates_clause(own: Inference, other: Inference) -> str:
    """Return what would fit and what tells that apart, as a clause; "": nothing is known."""
    clauses = unusable_settings(own)
    if own.candidates:
        told = " and ".join(map(told_words, own.candidates))
        clauses.append(inputs_words.CONTRADICTORY.format(told))
    behind = own.behind or other.behind
    if behind is not None and not own.candidates:
        clauses.append(inputs_words.BEHIND.format(pixels_words(values_text(behind.options))))
    return "".join(f"; {clause}" for clause in clauses)


def told_words(feed: InferredInput) -> str:
    """Return a feed with what tells it, such as "pixels / 255 (TFLite metadata)"."""
    return f"{pixels_words(values_text(feed.options))} ({source_words(feed.source, feed.names)})"


def unusable_notice(inference: Inference, path: Path) -> str:
    """Return a notice of settings of a model's input that are left out; "": none are."""
    words = "; ".join(unusable_settings(inference))
    return words and f"{path.name}: {words}"


def unusable_settings(inference: Inference) -> list[str]:
    """Return which settings of a model's input are left out, and why."""
    return [unusable_words(one.source, one.names, one.problem) for one in inference.unusable]


def feed_notice(side: ModelInterface, path: Path) -> str:
    """Return a notice of how a model is fed by what was inferred; "": it is stated, or told as ever."""
    if side.feed is None or side.feed["source"] in _AS_EVER or side.image_spec is None:
        return ""
    words = source_words(side.feed["source"], side.feed["names"])
    return inputs_words.INPUT_OF.format(
        path.name, pixels_words(values_text(values_of(side.image_spec))), words
    )


_AS_EVER = ("edgeflare", "quantisation", "other-model")
"""What tells it without doubt: an entry that was made for it, and numbers that are the input's own."""


def other_order(original: ChosenInput, deployed: ChosenInput) -> str:
    """Return a notice where both models' inputs have the same names, stated in another order."""
    ours, theirs = original.given.names, deployed.given.names
    if ours == theirs or set(ours) != set(theirs):
        return ""
    order = {"original": list(ours), "deployed": list(theirs)}
    return sentence(Issue("input-order", "warning", order, {"deployed.input_name": None}))


def store_seed_rows(sides: Sequence[ModelInterface], store: Store) -> None:
    """Store which row of the models' other inputs each seed has, where these have one for each.

    Of a seed that was made from another campaign's the name there counts. Raises as `seed_rows`.
    """
    if store.state.seeds_complete:
        origins = store.state.seed_origins
        names = {one: origins.get(one, one) for one in sorted(store.seed_ids())}
        if rows := seed_rows(sides, names.values()):
            store.state.seed_rows = {one: rows[name] for one, name in names.items()}


def seed_rows(sides: Sequence[ModelInterface], names: Collection[str]) -> Mapping[str, int]:
    """Return the row of each seed by its name; empty where the models have no inputs for each.

    Raises UsageError where one of these seeds has no row, or both models' files have others.
    """
    known = [one.chosen.rows for one in sides if one.chosen is not None and one.chosen.rows]
    if not known:
        return {}
    if any(one != known[0] for one in known):
        raise UsageError(
            "the fixed inputs of the original and of the deployed model have rows for other seeds: "
            f"give both files the same names in the array `{SEED_NAMES}`"
        )
    missing = [name for name in names if name not in known[0]]
    if missing:
        raise UsageError(
            f"the fixed inputs have no row for {counted(len(missing), 'seed')} of {len(names)} "
            f"({first_of(missing)}): name each seed in the array `{SEED_NAMES}`, as reports do, with "
            "a row in the inputs' arrays"
        )
    return known[0]


def seed_origins(source: Store | None, made: Mapping[str, str]) -> dict[str, str]:
    """Return the fact SEED_ORIGINS of seeds made from those of another campaign, by their ids.

    Where that one's seeds were made from an earlier campaign's, the names there count.
    """
    before = {} if source is None else source.state.seed_origins
    return {one: before.get(seed, seed) for one, seed in made.items()}


def check_inputs(original: Spec, deployed: Spec) -> None:
    """Raise UsageError where one sample can't be given to both models."""
    if isinstance(original, AudioSpec) and isinstance(deployed, AudioSpec):
        _check_clips(original, deployed)
    elif isinstance(original, InputSpec) and isinstance(deployed, InputSpec):
        _check_images(original, deployed)
    else:
        audio, images = "original", "deployed"
        if isinstance(deployed, AudioSpec):
            audio, images = images, audio
        raise UsageError(
            f"the {audio} model takes audio and the {images} model images; EdgeFlare gives both "
            "the same sample"
        )


def _check_clips(original: AudioSpec, deployed: AudioSpec) -> None:
    if original.rate != deployed.rate:
        raise UsageError(
            f"the original model takes audio at {original.rate} Hz and the deployed model at "
            f"{deployed.rate} Hz; EdgeFlare gives both the same sample"
        )
    lengths = original.samples, deployed.samples
    if None not in lengths and lengths[0] != lengths[1]:
        raise UsageError(
            f"the original model takes {lengths[0]} samples and the deployed model {lengths[1]}; "
            "EdgeFlare gives both the same clip, of which neither may miss a part: state the same "
            "`samples` of both inputs"
        )


def _check_images(original: InputSpec, deployed: InputSpec) -> None:
    channels = original.channels, deployed.channels
    if channels[0] != channels[1]:
        raise UsageError(
            f"the original model takes {channels[0]} channels and the deployed model "
            f"{channels[1]}; EdgeFlare gives both the same sample"
        )
    sizes = original.upright_size, deployed.upright_size
    if sizes[0] != sizes[1] and deployed.resize is None:
        raise UsageError(
            f"the original model takes {sizes[0][0]} x {sizes[0][1]} pixels and the deployed model "
            f"{sizes[1][0]} x {sizes[1][1]}; state how its input is brought to size with "
            "`--deployed-input resize=bilinear`"
        )
