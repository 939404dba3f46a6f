"""What identifies a run: models by content, programs by version."""

import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare._internal import plugins
from edgeflare._internal.files import file_sha256
from edgeflare._internal.text import first_of
from edgeflare._version import __version__
from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.outputs import raw_bytes
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.settings.config import CampaignConfig, SearchConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.devices.fingerprints import differences
from edgeflare.errors import InferenceFailedError, UsageError
from edgeflare.models import (
    AnswerReader,
    DecoderOptions,
    DetectionReader,
    InputSpec,
    OriginalModel,
    Spec,
)
from edgeflare.models.probe import probe_class
from edgeflare.seeds import changed_files
from edgeflare.store import Store
from edgeflare.strategies.registry import other_originals, probe_of
from edgeflare.words import campaign as words

_LIBRARIES = ("numpy", "opencv-python-headless", "onnxruntime", "ai-edge-litert")


def environment(search: SearchConfig) -> dict[str, Any]:
    """Return the versions of all on the host that may change a result."""
    strategy, options = search.strategy, search.options
    used: dict[plugins.Kind, str] = {"strategy": strategy, "oracle": search.oracle}
    return {
        "edgeflare": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        **{name: version(name) for name in _LIBRARIES},
        **{name: _version_of(name) for name in _probes_libraries(probe_of(strategy, options))},
        **dict(_further_models(other_originals(strategy, options))),
        **{
            f"{k} {name}": origin for k, name in used.items() if (origin := plugins.origin(k, name))
        },
    }


def _further_models(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield an entry for each further model of a strategy: its digest."""
    for place, path in enumerate(paths, 1):
        yield f"further model {place}, {path.name}", file_sha256(path) if path.is_file() else "gone"


def _probes_libraries(probe: str) -> Sequence[str]:
    return getattr(probe_class(probe), "libraries", ()) if probe else ()


def _version_of(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


def model_identity(
    model: ModelConfig, side: ModelInterface, reader: AnswerReader, in_effect: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything about one model that decides its answers."""
    path, repair, fixed = model.path, model.repair, model.fixed_inputs
    gallery = side.compared.gallery_path
    return {
        "name": path.name,
        "path": str(path.resolve()),
        "sha256": file_sha256(path),
        "bytes": path.stat().st_size,
        **({} if repair is None else {"repair": _file_identity(repair)}),
        **({} if model.input_name is None else {"input_name": model.input_name}),
        **({} if fixed is None else {"fixed_inputs": _file_identity(fixed)}),
        **({} if gallery is None else {"gallery": _file_identity(gallery)}),
        "runtime": dict(in_effect),
        "input": side.spec.to_json(),
        "feed": None if side.feed is None else dict(side.feed),
        "output": {
            **side.output.to_json(),
            "kind": reader.kind,
            "answers": side.kind.name,
            **({} if side.decoder is None else {"decoder": dict(side.decoder)}),
            **({"read": [one.to_json() for one in side.outputs]} if side.outputs else {}),
            **(
                {"detector": reader.options.model_dump(mode="json")}
                if isinstance(reader, DetectionReader)
                else {}
            ),
        },
    }


def _file_identity(path: Path) -> dict[str, Any]:
    return {"name": path.name, "sha256": file_sha256(path), "bytes": path.stat().st_size}


_ANSWERS = "original answers"
_PROBES = 4


def answer_digest(original: OriginalModel, spec: Spec) -> dict[str, str]:
    """Return the digest of the configured original's raw outputs on fixed noise, as an entry.

    It belongs to the host's environment: a runtime chooses its kernels by the processor, and others
    may round otherwise. Empty where the original can't answer on noise. Raises UsageError where its
    fixed inputs make it answer for several samples.
    """
    rng = np.random.default_rng(0)
    if isinstance(spec, InputSpec):
        shape = (_PROBES, *spec.upright_size, spec.channels)
        probes = rng.integers(256, size=shape, dtype=np.uint8)
    else:
        levels = rng.integers(-8192, 8193, (_PROBES, spec.samples or spec.rate))
        probes = (levels / 32768).astype(np.float32)
    try:
        answers, _ = original.raw_answer(list(probes))
    except InferenceFailedError:
        return {}
    original.check_fixed_inputs(answers[0])
    digest = hashlib.sha256()
    for raw in answers:
        digest.update(raw_bytes(raw))
    return {_ANSWERS: digest.hexdigest()}


def check_same_answers(before: Mapping[str, Any], now: Mapping[str, str]) -> list[str]:
    """Return a sentence where the original no longer answers as in the environment `before`."""
    known, found = before.get(_ANSWERS), now.get(_ANSWERS)
    if known is None or known == found:
        return []
    return [words.OTHER_ANSWERS]


_UNIMPORTANT = ("platform",)
_SHOWN = 5


def environment_differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> str:
    """Return in words how another host's environment differs, where that may change a result."""
    found = [
        words.differs(name, there.get(name), here.get(name))
        for name in {**here, **there}
        if name not in (*_UNIMPORTANT, _ANSWERS) and here.get(name) != there.get(name)
    ]
    if here.get(_ANSWERS) != there.get(_ANSWERS):
        found.append(words.OTHER_ANSWERS_THERE)
    return ", ".join(found[:_SHOWN])


def check_unchanged(config: CampaignConfig, store: Store) -> list[str]:
    """Return a sentence for each model, seed file and library that has changed."""
    found = [*_changed_models(config, store), *changed_seeds(config, store)]
    return [*found, *_changed_libraries(config, store)]


def check_same_models(config: CampaignConfig, store: Store, *, by_flag: bool = True) -> None:
    """Raise UsageError where a model file isn't the one that the campaign was run with.

    That holds for a repair and for fixed inputs, too.
    `by_flag`: the command has --original and --deployed.
    """
    for which, path in (("original", config.original.path), ("deployed", config.deployed.path)):
        known = store.models.get(which, {}).get("sha256")
        if known is not None and file_sha256(path) != known:
            raise UsageError(
                f"{path} isn't the {which} model that the campaign in {store.folder} was run with: "
                + (f"name that one with --{which}" if by_flag else "put that one there")
                + ", or run a campaign with this one"
            )
    if changed := next(changed_additions(config, store), None):
        raise UsageError(f"since the campaign was run {changed}; undo the change")


def check_same_devices(config: CampaignConfig, fleet: Fleet, store: Store) -> list[str]:
    """Return a sentence for each device whose fingerprint is none that the campaign knows.

    Where each device searches for itself it must be its own, else that of any of them.
    """
    known = store.fingerprints()
    found = []
    for session in fleet:
        own = known.get(session.name)
        if config.fleet.mode == "replicate":
            candidates = [own] if own else []
        else:
            candidates = list(known.values())
        if not candidates or session.fingerprint in candidates:
            continue
        old = own or candidates[0]
        changes = changed_fields(old, session.fingerprint)
        found.append(words.ANOTHER_DEVICE.format(session.name, changes))
    return found


def changed_fields(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the first fields in which two fingerprints differ, in words."""
    return ", ".join(words.was(*difference) for difference in differences(before, now)[:_SHOWN])


def check_forced(changes: list[str], *, force: bool) -> str | None:
    """Return a notice where `force` lets changes pass. Raises UsageError where it doesn't."""
    if not changes:
        return None
    text = first_of(changes)
    if force:
        return words.FORCED.format(text)
    raise UsageError(
        f"since the campaign began {text}; what is found from now on might not fit what was found "
        "before: undo the change, start a new campaign, or go on all the same with --force"
    )


def _changed_models(config: CampaignConfig, store: Store) -> Iterator[str]:
    for which, path in (("original", config.original.path), ("deployed", config.deployed.path)):
        known = store.models.get(which, {}).get("sha256")
        yield from _changed(f"the {which} model", path, known)
    yield from changed_additions(config, store)
    for which, model in (("original", config.original), ("deployed", config.deployed)):
        decoder = store.models.get(which, {}).get("output", {}).get("decoder")
        if (
            decoder
            and isinstance(model.decoder, DecoderOptions)
            and model.decoder.decoder().describe() != decoder
        ):
            yield words.changed("the vocabulary", model.decoder.vocabulary)


def changed_additions(config: CampaignConfig, store: Store) -> Iterator[str]:
    """Yield a sentence for a changed repair, and for changed fixed inputs of either model."""
    original, deployed = config.original, config.deployed
    for which, key, path in (
        ("deployed", "repair", deployed.repair),
        ("deployed", "gallery", config.values.gallery),
        ("original", "fixed_inputs", original.fixed_inputs),
        ("deployed", "fixed_inputs", deployed.fixed_inputs),
    ):
        stored = store.models.get(which, {}).get(key)
        if path is not None and stored is not None:
            yield from _changed(f"the file of the {key.replace('_', ' ')}", path, stored["sha256"])


def _changed(what: str, path: Path, digest: str | None) -> Iterator[str]:
    """Yield a sentence where a file isn't what it was; with no `digest` that isn't known."""
    if digest is not None and not path.is_file():
        yield words.gone(what, path)
    elif digest is not None and file_sha256(path) != digest:
        yield words.changed(what, path)


def changed_seeds(config: CampaignConfig, store: Store) -> Iterator[str]:
    """Yield a sentence for each seed file that has changed."""
    source: Path = config.seeds.path
    if not source.exists():
        if not store.state.seeds_complete:
            yield words.SEEDS_GONE.format(source)
        return  # the samples are in the campaign's store
    known = ((seed.id, seed.file_sha256) for seed in store.seeds() if seed.file_sha256)
    for name in changed_files(source, known):
        yield words.SEED_FILE_CHANGED.format(name)


def _changed_libraries(config: CampaignConfig, store: Store) -> Iterator[str]:
    before, now = store.environment, environment(config.search)
    for name, installed in now.items():
        if name not in _UNIMPORTANT and before.get(name) != installed:
            yield words.was(name, before.get(name), installed)
