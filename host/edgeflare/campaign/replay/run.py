"""A replay: the inputs of a campaign or a corpus, sent again to another model, device or firmware.

It is a campaign of its own, with the strategy none: each input is one of its seeds, and one on
which the models differ is confirmed as any seed that deviates. The fact "replay" has what the
result needs of each input.
"""

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from edgeflare._internal.files import file_sha256, new_folder_name
from edgeflare._internal.text import shape_text
from edgeflare.answers import kind_of_output
from edgeflare.campaign import executor
from edgeflare.campaign.context import RunContext, RunOptions
from edgeflare.campaign.events import Notice
from edgeflare.campaign.fleet import fleet_devices
from edgeflare.campaign.pair.inputs import seed_origins
from edgeflare.campaign.pair.model_pair import stored_format
from edgeflare.campaign.provenance import changed_additions
from edgeflare.campaign.replay.inputs import ReplaySource, replay_source
from edgeflare.campaign.seeds import expected_audio
from edgeflare.campaign.settings.config import CampaignConfig, config_from, load_config
from edgeflare.campaign.settings.models import SeedsConfig, StatedOutput
from edgeflare.devices import LOCAL, Device, load_inventory, resolve_device
from edgeflare.errors import StoreError, UsageError
from edgeflare.models import OriginalModel
from edgeflare.models.image_input import options_in_file, sample_size
from edgeflare.store import SeedInput, Store
from edgeflare.store.location import LONGEST_NAME, is_campaign, is_corpus
from edgeflare.store.records import ReplayInput
from edgeflare.store.state import StoredReplay
from edgeflare.types import Sample
from edgeflare.words import campaign as words

if TYPE_CHECKING:
    from typing_extensions import Unpack

ONLY = ("triggers", "seeds")
"""The kinds of inputs that a replay can be limited to."""
_BATCH = 256
_NEAR = 3


def replay_base(
    source: Path,
    campaign: Path | None = None,
    *,
    original: Path | None = None,
    deployed: Path | None = None,
) -> CampaignConfig:
    """Return the configuration on which a replay is based: that of the source, or of `campaign`.

    `campaign` is a ``campaign.toml`` or a campaign's folder. A corpus has no models of its own: it
    needs that, or both model files. Raises UsageError where it has neither, StoreError where a
    folder can't be used.
    """
    if campaign is not None and not campaign.is_dir():
        return load_config(campaign)
    with replay_source(campaign or source) as opened:
        if opened.store is not None:
            return config_from(opened.store.campaign, str(opened.folder))
        if campaign is not None:
            raise UsageError(f"{campaign} is a corpus: name a campaign.toml or a campaign's folder")
        if original is None or deployed is None:
            raise UsageError(
                f"{opened.folder} is a corpus, which has no models of its own: name them with "
                "--original and --deployed, or with --campaign and a campaign.toml or a campaign's "
                "folder"
            )
        values = {
            "original": {"path": original},
            "deployed": {"path": deployed},
            "seeds": {"path": opened.folder},
        }
        return config_from(values, "replay")


def run_replay(
    source: Path,
    config: CampaignConfig,
    *,
    only: str | None = None,
    seed_ids: Sequence[str] = (),
    ids: Collection[str] = (),
    target: str | None = None,
    name: str | None = None,
    **run: "Unpack[RunOptions]",
) -> Path:
    """Send a source's inputs again, with a `config` of `replay_config`; return the replay's folder.

    `source` is the folder of a campaign, of a replay (its inputs, as it found them) or of a corpus.
    `only` ("triggers" or "seeds") takes the triggering inputs alone, or the seed inputs alone;
    `seed_ids` the triggering inputs that were found from these seeds, those of the named devices
    where they found some; `ids` the inputs of these ids. `target` says the model and device (``model/device``) whose last answers
    to a corpus' entries are compared with; None takes the last answers of any. An interrupted
    replay goes on by `resume_campaign`. Raises UsageError where nothing fits, and else as
    `run_campaign`.
    """
    if only is not None and only not in ONLY:
        raise UsageError(f"--only {only}: choose one of {', '.join(ONLY)}")
    if only is not None and seed_ids:
        raise UsageError("--only and --trigger contradict each other; state one")
    context = RunContext(name=name, **run)
    with replay_source(source, target) as opened:
        inputs = list(opened.inputs())
        chosen = [one for one in inputs if one.id in ids] or _chosen_inputs(
            inputs, opened.folder, only, seed_ids, config.devices
        )
        config = _prepared(config, opened)
        executor.check_files(config)
        selected = {one.id for one in chosen}
        sample = next(opened.selected(selected))[1]
        notices = _notices(config, opened, chosen, only)
        for text in notices:
            context.progress(Notice(text))
        return executor.start(
            config,
            devices=_devices(config, opened.store),
            fill=partial(_import_inputs, opened, sorted(selected), notices),
            check=partial(_check_sample, config, sample, opened.rate),
            context=context,
        )


def resume_import(store: Store) -> None:
    """Store the missing inputs of a replay that was killed while they were stored.

    Raises StoreError where it was killed before it knew which inputs those are.
    """
    replay = store.state.replay
    if replay is None:
        folder = Path(store.setting("seeds", "path"))
        if is_corpus(folder) or is_campaign(folder):
            raise StoreError(
                f"the replay in {store.folder} was interrupted before it began: delete the folder "
                "and run it anew"
            )
        return
    with replay_source(Path(replay.source.folder), replay.source.target) as source:
        _add_inputs(source, replay, store)


def _import_inputs(
    source: ReplaySource, selected: list[str], notices: Sequence[str], store: Store
) -> None:
    """Store the inputs of a new replay; delete its folder where that fails."""
    replay = StoredReplay(source.origin(), selected=selected, notices=notices)
    try:
        store.state.replay = replay
        _add_inputs(source, replay, store)
    except BaseException:
        store.discard()
        raise


def _add_inputs(source: ReplaySource, replay: StoredReplay, store: Store) -> None:
    selected, known = set(replay.selected), store.seed_ids()
    inputs = source.selected(selected)
    added: list[ReplayInput] = []
    origins: dict[str, str] = {}
    if source.rate is not None:
        store.set_sample_rate(source.rate)
    while batch := list(islice(inputs, _BATCH)):
        store.add_seeds(_seed_of(one, sample) for one, sample in batch if one.id not in known)
        added += (one for one, _ in batch)
        origins.update((one.id, one.seed_id) for one, _ in batch)
    store.state.replay = replace(replay, inputs=added)
    store.state.seed_origins = seed_origins(source.store, origins)
    store.complete_seeds([], replay.notices)


def _seed_of(one: ReplayInput, sample: Sample) -> SeedInput:
    """Return an input as a seed; a trigger need not be what its seed's label says."""
    return SeedInput(one.id, sample, one.label if one.kind == "seed" else None)


def _chosen_inputs(
    entries: Sequence[ReplayInput],
    folder: Path,
    only: str | None,
    seed_ids: Sequence[str],
    devices: Sequence[str],
) -> list[ReplayInput]:
    """Return the inputs to send. Raises UsageError where there are none, or a name is unknown."""
    if seed_ids:
        return [entry for name in seed_ids for entry in _named(entries, folder, name, devices)]
    kind = None if only is None else only.removesuffix("s")
    chosen = [entry for entry in entries if kind in (None, entry.kind)]
    if not chosen:
        what = {"triggers": "triggering input", "seeds": "seed input on which the models agreed"}
        raise UsageError(
            f"{folder} has no {what.get(only or '', 'input that both models answered')}: nothing "
            "to replay"
        )
    return chosen


def _named(
    entries: Sequence[ReplayInput], folder: Path, name: str, devices: Sequence[str]
) -> list[ReplayInput]:
    """Return the input of this id, or a seed's triggers: those of the devices, if any.

    Of a seed from which nothing was searched these are the survey's.
    """
    triggers = [entry for entry in entries if entry.kind == "trigger"]
    found = [entry for entry in entries if entry.id == name]
    of_seed = [entry for entry in triggers if entry.seed_id == name and entry not in found]
    found += [entry for entry in of_seed if entry.id.startswith("trigger:")] or of_seed
    if found:
        return [entry for entry in found if entry.replica in devices] or found
    if any(name in (entry.seed_id, entry.id) for entry in entries):
        raise UsageError(f"from the seed {name} of {folder} no trigger was found: the models agree")
    names = dict.fromkeys(entry.seed_id for entry in triggers)
    near = difflib.get_close_matches(name, names, _NEAR) or list(islice(names, _NEAR))
    raise UsageError(
        f"there is no trigger of a seed {name!r} in {folder}"
        + (f"; there is, for example, {', '.join(near)}" if near else "")
    )


def _prepared(config: CampaignConfig, source: ReplaySource) -> CampaignConfig:
    """Return the configuration with the source as its seeds, and its models' output kinds."""
    seeds = SeedsConfig(path=source.folder, size=config.seeds.size)
    config = config.model_copy(update={"seeds": seeds})
    if config.out is None:
        longest = None if config.store is None else LONGEST_NAME
        folder = new_folder_name("campaigns", f"{config.deployed.path.stem}-replay", longest)
        config = config.model_copy(update={"out": folder})
    known = source.store.models if source.store is not None else {}
    for which in ("original", "deployed"):
        model = getattr(config, which)
        output = known.get(which, {}).get("output", {})
        if (
            not output.get("kind")
            or model.output != "auto"
            or not _same_file(model.path, known[which])
        ):
            continue
        kind, detector = stored_format(output, source.folder)
        # The campaign's many seeds show the kind of outputs better than a few triggers.
        stated: dict[str, Any] = {}
        if detector is not None:
            stated = {"decoder": detector}
        elif (named := kind_of_output(kind).stated_output(kind)) in get_args(StatedOutput):
            stated = {"output": named}
        config = config.model_copy(update={which: model.model_copy(update=stated)})
    return config


def _same_file(path: Path, known: dict[str, Any]) -> bool:
    return path.is_file() and file_sha256(path) == known.get("sha256")


def _check_sample(
    config: CampaignConfig, sample: Sample, rate: int | None, original: OriginalModel
) -> None:
    """Raise UsageError where this input has not the kind, size or rate that the original takes."""
    stated, name = config.original.input, config.original.path.name
    if stated.resize is not None and rate is None:
        return
    tensor = original.input
    audio = expected_audio(config, original)
    if audio is not None or rate is not None:
        _check_sound(audio and audio[0], rate, name)
        return
    in_file = options_in_file(original.metadata, str(original.path))
    height, width, channels = sample.shape
    try:
        size, depth = sample_size(tensor, stated, in_file, "the original model")
    except UsageError:  # open axes, which the inputs fill
        in_file = in_file.model_copy(update={"size": (height, width)})
        size, depth = sample_size(tensor, stated, in_file, "the original model")
    if (*size, depth) != (height, width, channels):
        raise UsageError(
            f"the inputs to replay are {shape_text(sample.shape)}, but the original model "
            f"{name} takes {shape_text((*size, depth))}: it is none that they were found with"
        )


def _check_sound(taken: int | None, given: int | None, name: str) -> None:
    """Raise UsageError where inputs and model are not audio of one rate in Hz; None: images."""
    if taken != given:
        what = ["images" if rate is None else f"audio at {rate} Hz" for rate in (given, taken)]
        raise UsageError(
            f"the inputs to replay are {what[0]}, but the original model {name} takes {what[1]}: "
            "it is none that they were found with"
        )


def _devices(config: CampaignConfig, store: Store | None) -> list[Device]:
    """Return the devices; names that only the source knows, such as "local#2", are its own."""
    known = {one.name: one for one in (executor.stored_devices(store) if store else ())}
    inventory = load_inventory(config.inventory)
    for text in config.devices:
        if text in known and text not in inventory and text != LOCAL.name:
            break
    else:
        return fleet_devices(config)
    devices = [
        known[text] if text in known and text not in inventory else resolve_device(text, inventory)
        for text in dict.fromkeys(config.devices)
    ]
    if config.python is None:
        return devices
    return [device.model_copy(update={"python": config.python}) for device in devices]


def _notices(
    config: CampaignConfig, source: ReplaySource, chosen: Iterable[ReplayInput], only: str | None
) -> list[str]:
    """Return the notices about the source."""
    if source.store is None:
        return []
    notices = []
    what = f"the {source.kind} {source.folder}"
    if not source.store.state.finished:
        notices.append(words.unfinished_source(what))
    if only is None and all(entry.kind == "seed" for entry in chosen):
        notices.append(words.without_triggers(what))
    known = source.store.models.get("original")
    if known and not _same_file(config.original.path, known):
        notices.append(words.another_original(config.original.path.name, source.folder.name))
    notices += (words.changed_since(changed) for changed in changed_additions(config, source.store))
    return notices
