"""The triage of a campaign's pair, from what is stored of it: models, seeds, answers, how they are fed."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from edgeflare._internal.files import file_sha256
from edgeflare._internal.text import names_text
from edgeflare.answers import kind_named
from edgeflare.campaign.events import Progress, Stage
from edgeflare.campaign.pair.inputs import chosen_input
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig, SeedsConfig
from edgeflare.devices import runtime_for
from edgeflare.errors import EdgeFlareError, ModelError, SeedError, UsageError
from edgeflare.models import ONE_INPUT, OriginalModel, TensorInfo, spec_from_json
from edgeflare.seeds import open_seeds
from edgeflare.seeds.images import orientation
from edgeflare.store import SeedRecord, Store
from edgeflare.triage.cause import NAME, Triage
from edgeflare.triage.model import ModelFile, real_values
from edgeflare.triage.pair import DeviceAnswers, PairSeeds
from edgeflare.triage.process import triage_apart
from edgeflare.triage.ways import is_resized
from edgeflare.types import Sample
from edgeflare.words.triage import ANOTHER_FILE, LOOKING

_ON_HOST = {"tensorrt": "onnx"}
"""What runs a device's ``.onnx`` file here, where the device's own runtime can't."""
_MOST_LABELLED, _MOST = 120, 32
_ORIENTATIONS = {
    2: "mirror",
    3: "rotate-180",
    4: "flip",
    5: "transpose",
    6: "rotate-270",
    7: "transverse",
    8: "rotate-90",
}
"""How an image that an EXIF tag turns is stored, beside the upright one."""
_HEADER = 1 << 18
_MOST_BYTES = 512 << 20


def runtime_here(path: Path, runtime: str) -> tuple[str | None, str]:
    """Return the runtime that runs a device's model file on this machine, or None and why not."""
    here = _ON_HOST.get(runtime, runtime)
    try:
        if here != runtime and runtime_for(path) != here:
            raise UsageError(f"a file for {runtime}")
        OriginalModel(path, here, {}).close()
    except EdgeFlareError as error:
        return None, str(error).removeprefix("original model: ")
    return here, ""


def stored_triage(store: Store, config: CampaignConfig, progress: Progress) -> Triage:
    """Return the newest triage of a campaign; where it has none, run one and store it.

    Raises as `triage_campaign`.
    """
    found = store.result(NAME, Triage)
    if found is None:
        progress(Stage(NAME, LOOKING))
        found = triage_campaign(store, config)
        store.add_result(NAME, found)
    return found


def triage_campaign(store: Store, config: CampaignConfig) -> Triage:
    """Return why the models of a campaign differ, by experiments on this machine.

    A deployed model that can't be run here is judged by what its device returned for the first seeds.
    Raises UsageError where that isn't stored, the original is another file now, or no seed was answered;
    ModelError where the original can't be loaded.
    """
    models = store.models
    if _is_other_file(config.original.path, models["original"]):
        raise UsageError(
            f"{config.original.path} isn't the original that the campaign in {store.folder} was run "
            "with: put that one there, or run a campaign with this one"
        )
    name = models["original"]["runtime"]["name"]
    original = _file("original", config.original, models["original"], name, config.original.options)
    seeds, resize = _seeds(store, config)
    if not seeds.samples:
        raise UsageError(f"{store.folder} has no seed that both models answered")

    def triaged(files: tuple[ModelFile, ModelFile], seeds: PairSeeds) -> Triage:
        return triage_apart(files, seeds, kind_named(models["original"]["output"]["answers"]))

    here, why = runtime_here(config.deployed.path, models["deployed"]["runtime"]["name"])
    if here is not None and _is_other_file(config.deployed.path, models["deployed"]):
        here, why = None, ANOTHER_FILE
    if here is not None:
        try:
            deployed = _file("deployed", config.deployed, models["deployed"], here, {})
            files = original, deployed
            if resize is not None:
                files = original.resizing(resize), deployed.resizing(resize)
            return triaged(files, seeds)
        except ModelError as error:  # it may still be the original that can't be run
            if seeds.device is None:
                raise
            why = str(error)
    if seeds.device is None:
        raise UsageError(
            f"why {config.deployed.path.name} differs is told by experiments with it on this "
            f"machine, and it can't be run here: {why}"
        )
    unrunnable = _unrunnable(config.deployed, models["deployed"], why)
    return triaged((original, unrunnable), _to_device(store, seeds))


def _is_other_file(path: Path, about: Mapping[str, Any]) -> bool:
    """Whether a model's file has changed since; of one that isn't there what loads it tells."""
    return path.is_file() and file_sha256(path) != about["sha256"]


def _unrunnable(config: ModelConfig, about: Mapping[str, Any], why: str) -> ModelFile:
    """Return a deployed model that can't be run here."""
    spec = spec_from_json(about["input"])
    announced = _outputs(about)
    names = tuple(output.name for output in announced)
    return ModelFile("deployed", config.path, "", {}, spec, ONE_INPUT, names, why, announced)


def _outputs(about: Mapping[str, Any]) -> tuple[TensorInfo, ...]:
    """Return the outputs of a model that count."""
    output = about["output"]
    return tuple(TensorInfo.from_json(tensor) for tensor in output.get("read", [output]))


def _to_device(store: Store, seeds: PairSeeds) -> PairSeeds:
    """Return the seeds that the device's answers are to."""
    kept, device = store.state.device_outputs, seeds.device
    assert kept is not None and device is not None  # noqa: S101, PT018
    labels = {seed.id: -1 if seed.label is None else seed.label for seed in store.seeds()}
    of_seeds = [labels[name] for name in kept.seeds]
    is_labelled = any(label >= 0 for label in of_seeds)
    return PairSeeds(device.samples, of_seeds if is_labelled else [], device.rows, device)


def _device(store: Store, config: CampaignConfig) -> DeviceAnswers | None:
    """Return what the device returned for the first seeds; None where that isn't stored."""
    kept = store.state.device_outputs
    if kept is None:
        return None
    samples = {seed.id: seed.sample for seed in store.seeds()}
    rows, outputs = store.state.seed_rows, []
    for info, digest in zip(_outputs(store.models["deployed"]), kept.outputs, strict=True):
        array = store.get_sample(digest)
        outputs.append(np.stack([real_values(raw, info) for raw in array]))
    checked = store.state.answers_checked
    checks = [checked[name] for name in ("", *kept.devices) if name in checked]
    repeated = [check.repeated["deployed"] for check in checks if check.repeated is not None]
    return DeviceAnswers(
        [store.get_sample(samples[name]) for name in kept.seeds],
        [rows.get(name, 0) for name in kept.seeds],
        tuple(outputs),
        max(repeated, default=0),
        _accelerator(store, config, kept.devices),
    )


def _accelerator(store: Store, config: CampaignConfig, devices: Collection[str]) -> str:
    """Return what the options give a model to in place of the CPU; "": nothing."""
    options: dict[str, Any] = {}
    for device in store.state.devices:
        if device["name"] in devices:
            options |= device.get("options", {})
    options |= config.deployed.options
    if isinstance(delegate := options.get("delegate"), str):
        return Path(delegate).name
    others = [one for one in options.get("providers", []) if one != "CPUExecutionProvider"]
    return names_text(others)


def _file(
    side: Literal["original", "deployed"],
    config: ModelConfig,
    about: Mapping[str, Any],
    runtime: str,
    options: Mapping[str, Any],
) -> ModelFile:
    given = ONE_INPUT
    if config.input_name is not None or config.fixed_inputs is not None:
        model = OriginalModel(config.path, runtime, options)
        try:
            given = chosen_input(config, model.inputs, f"the {side} model").given
        finally:
            model.close()
    names = [output.name for output in _outputs(about)]
    spec = spec_from_json(about["input"])
    return ModelFile(side, config.path, runtime, dict(options), spec, given, tuple(names))


def _seeds(store: Store, config: CampaignConfig) -> tuple[PairSeeds, str | None]:
    """Return at most 120 labelled seeds, or 32, evenly spread over those that both models answered.

    Images are as their files have them, where the campaign resized them by the rule that is returned,
    so that other rules can be tried.
    """
    answered = [seed for seed in store.seeds() if seed.outputs is not None]
    is_labelled = any(seed.label is not None for seed in answered)
    most = min(len(answered), _MOST_LABELLED if is_labelled else _MOST)
    places = np.unique(np.linspace(0, max(0, len(answered) - 1), most).astype(int))
    chosen = [answered[int(place)] for place in places]
    rows = store.state.seed_rows
    samples = [store.get_sample(seed.sample) for seed in chosen]
    images = _images_of_files(chosen, samples, config.seeds)
    seeds = PairSeeds(
        samples if images is None else images,
        [-1 if seed.label is None else seed.label for seed in chosen] if is_labelled else [],
        [rows.get(seed.id, 0) for seed in chosen] if rows else [],
        device=_device(store, config),
        orientations=_orientations(chosen, config.seeds.path),
    )
    return seeds, None if images is None else config.seeds.resize


def _images_of_files(
    seeds: Sequence[SeedRecord], samples: Sequence[Sample], settings: SeedsConfig
) -> list[Sample] | None:
    """Return the images before they were resized; None where they weren't, are too large together, or
    their files give other samples now.
    """
    rule = settings.resize
    if rule is None:
        return None
    images: list[Sample] = []
    for seed, sample in zip(seeds, samples, strict=True):
        channels = sample.shape[2]
        try:
            source = open_seeds(settings.path / seed.id, size=None, channels=channels)
            image = next(iter(source)).sample
        except (SeedError, StopIteration):
            return None
        images.append(image)
        size = sum(one.nbytes for one in images)
        if not is_resized(image, sample, rule) or size > _MOST_BYTES:
            return None
    return images


def _orientations(seeds: Sequence[SeedRecord], folder: Path) -> dict[int, str]:
    """Return how the images of seeds are stored that an EXIF tag turns, by the seeds' places."""
    found = {}
    for place, seed in enumerate(seeds):
        path = folder / seed.id
        try:
            with path.open("rb") as file:
                tag = orientation(file.read(_HEADER))
        except (OSError, ValueError):
            continue
        if tag in _ORIENTATIONS:
            found[place] = _ORIENTATIONS[tag]
    return found
