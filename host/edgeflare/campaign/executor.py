"""Runs and resumes one campaign, without its control."""

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from edgeflare._internal import plugins
from edgeflare._internal.files import new_folder_name
from edgeflare._internal.text import names_text
from edgeflare.answers.detections.formats import class_names
from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.outputs import load_repair
from edgeflare.campaign.context import RunContext
from edgeflare.campaign.events import Notice, Reporter, Stage
from edgeflare.campaign.fleet import Fleet, LeaseOwner, check_one_model, fleet_devices
from edgeflare.campaign.pair.inputs import chosen_input
from edgeflare.campaign.pair.labelled_feed import resolved_pair
from edgeflare.campaign.pair.model_pair import resolve_pair
from edgeflare.campaign.pair.preflight import same_file
from edgeflare.campaign.priority import check_priority
from edgeflare.campaign.provenance import (
    answer_digest,
    check_forced,
    check_same_answers,
    check_same_devices,
    check_unchanged,
    environment,
)
from edgeflare.campaign.queries.search import strategy_of
from edgeflare.campaign.seeds import check_search_options, seed_source
from edgeflare.campaign.settings.baseline import baseline_pairs
from edgeflare.campaign.settings.config import CampaignConfig, SearchConfig, config_from, merge
from edgeflare.campaign.settings.limits import check_kind_limits
from edgeflare.campaign.stages import Campaign
from edgeflare.campaign.status import failed_replicas, is_finished, is_searched
from edgeflare.campaign.survey.references import check_references
from edgeflare.devices import Device, runtime_for
from edgeflare.devices.inventory import BUILT_IN_TRANSPORTS, find_inventory
from edgeflare.devices.runtimes import BUILT_IN as RUNTIMES
from edgeflare.errors import PreflightError, UsageError
from edgeflare.models import OriginalModel
from edgeflare.seeds import SeedSource
from edgeflare.seeds.class_names import read_class_names
from edgeflare.store import CampaignLock, Store, campaign_text, folder_at
from edgeflare.store.creation import check_database
from edgeflare.store.database import decoding
from edgeflare.store.location import LONGEST_NAME
from edgeflare.store.samples import SampleReader
from edgeflare.strategies.registry import other_originals, probe_of, with_full_paths
from edgeflare.survey import families_for
from edgeflare.types import TRIGGERS
from edgeflare.words.campaign import DISAGREES, NOTHING_LEFT

Fill: TypeAlias = Callable[[Store], None]
"""Stores the seeds of a new campaign that are not stored yet."""

WITHOUT_SURVEY = {"survey": {"enabled": False}}
"""What a campaign of an edgeflare that had no survey goes on with."""

Check: TypeAlias = Callable[[OriginalModel], None]
"""Raises UsageError where the loaded original doesn't fit; nothing is made and no device asked yet."""

After: TypeAlias = Callable[[CampaignConfig, Store, Reporter], None]
"""Called once every search is finished, with the devices closed and the folder still locked."""


class Cluster(Protocol):
    """Workers whose devices take part in place of this process's; for one campaign.

    An entry point of the group ``edgeflare.clusters`` is a function of the address and the keywords
    `ca_file`, `cert`, `key` and `insecure`, that returns a context manager of a cluster.
    """

    def open(self, config: CampaignConfig, owner: LeaseOwner, reporter: Reporter) -> Fleet:
        """Let every free worker open its devices for this campaign; return these.

        Notices go to `reporter`, also later ones. Raises UsageError, and DeviceError where no
        worker has a device that can be used.
        """
        ...

    def check_environments(self, environment: Mapping[str, Any], *, allow_mixed: bool) -> list[str]:
        """Leave out the workers whose environment isn't this one, or return notices on them.

        Raises UsageError where no worker is left.
        """
        ...

    def campaign(
        self,
        config: CampaignConfig,
        original: OriginalModel,
        sides: tuple[ModelInterface, ModelInterface],
        store: Store,
        reporter: Reporter,
    ) -> Campaign:
        """Return the stages of the campaign, on the devices that `open` returned."""
        ...


def start(
    config: CampaignConfig,
    *,
    devices: Sequence[Device] = (),
    fill: Fill | None = None,
    check: Check | None = None,
    keep_seeds: bool = False,
    after: After | None = None,
    context: RunContext,
) -> Path:
    """Run a campaign and return its folder.

    `devices` stand in for those that the configuration names, `fill` for the source of the seeds.
    `check` is called with the loaded original.
    `keep_seeds`: the campaign's folder gets a copy of the seeds' file, which is then its source.
    The rest, and what it raises, are as `run_campaign` says.
    """
    check_files(config)
    baseline_pairs(config.limits)  # raises where it can't be used, before anything is made
    notices = check_references(config)
    check_families(config)
    if config.out is not None:
        Store.check_free(config.out)
    reporter, cluster = Reporter(context.progress), context.cluster
    if cluster is None:
        devices = devices or fleet_devices(config)
    else:
        config.fleet.check_for_workers()
    longest = None if config.store is None else LONGEST_NAME
    folder = config.out or new_folder_name("campaigns", config.deployed.path.stem, longest)
    folder = folder.absolute()
    if config.store is not None:
        check_database(folder, config.store)
    owner = LeaseOwner(uuid.uuid4().hex, context.name or folder.name)
    with ExitStack() as stack:
        with ExitStack() as searching:
            original, source = _load(config, searching, with_seeds=fill is None)
            if check is not None:
                check(original)
            fleet = searching.enter_context(
                _open_fleet(devices, config, owner, reporter, context, need_all=True)
                if cluster is None
                else cluster.open(config, owner, reporter)
            )
            with_labels = None if cluster is not None else source
            config, sides = resolved_pair(config, original, fleet, with_labels)
            if source is not None:
                check_priority(config, sides)
                is_audio = sides[0].image_spec is None
                check_search_options(config, sides[0].task, audio=is_audio)
            search = _with_probe(config.search, original)
            if after is not None:
                notices += same_file(config, sides)
            baseline = baseline_pairs(config.limits, sides[0].classes)
            is_limited_by_class = bool(sides[0].kind.checks())
            names = _class_names(config, original.metadata) if is_limited_by_class else None
            check_kind_limits(config.limits, sides[0].kind, names)
            found = environment(search) | answer_digest(original, sides[0].spec)
            if cluster is not None:
                mixed = config.fleet.allow_mixed
                notices += cluster.check_environments(found, allow_mixed=mixed)
            check_one_model(fleet)
            given = config.seeds
            seeds = given.model_copy(update={"path": folder / given.path.name})
            config = config.model_copy(
                update={
                    "out": folder,
                    "inventory": find_inventory(config.inventory),
                    "seeds": seeds if keep_seeds else given,
                    "search": search,
                }
            )
            store = stack.enter_context(
                Store.create(
                    folder,
                    config.model_dump(mode="json"),
                    id=owner.id,
                    environment=found,
                    files=[given.path] if keep_seeds else (),
                    database=config.store,
                    samples=config.samples,
                )
            )
            stack.enter_context(CampaignLock(folder))
            if fill is not None:
                fill(store)
            store.state.devices = [_described(device) for device in devices]
            if baseline is not None:
                store.state.baseline_pairs = sorted(baseline)
            if names is not None:
                store.state.class_names = list(names)
            campaign = _campaign(config, original, fleet, sides, store, reporter, cluster)
            campaign.run(source, notices, is_new=True)
        _finish(after, store, reporter, allow_disagreement=config.allow_disagreement)
    return folder


def _class_names(config: CampaignConfig, metadata: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names of the classes that are stated, else those in the original's file."""
    path = config.detection.class_names
    if path is None:
        return class_names(metadata)
    known = read_class_names(path)
    return tuple(known.get(number, str(number)) for number in range(max(known) + 1))


def resume(
    folder: Path,
    *,
    fill: Fill | None = None,
    after: After | None = None,
    force: bool = False,
    changes: Mapping[str, Any] | None = None,
    typed: Mapping[str, str] | None = None,
    context: RunContext,
    check_samples: bool = False,
) -> Path:
    """Resume a campaign; return its folder.

    `fill` stands in for the source of the seeds. The rest, and what it raises, are as
    `resume_campaign` says.
    """
    folder = folder_at(folder).absolute()
    reporter, cluster = Reporter(context.progress), context.cluster
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(folder))
        stack.enter_context(CampaignLock(folder))
        store.remove_torn()  # under the lock: a process that still writes a file has it
        changes = changes or {}
        others = not changes.keys().isdisjoint(("devices", "inventory"))
        begun = {**WITHOUT_SURVEY, **store.campaign}
        config = config_from(merge(begun, changes), str(folder), typed)
        if fill is not None and not store.state.seeds_complete:
            fill(store)
        if not is_searched(store) or others or failed_replicas(store):
            owner = LeaseOwner(store.id, context.name or folder.name)
            notice = check_forced(check_unchanged(config, store), force=force)
            devices: Sequence[Device] = ()
            if cluster is None:
                devices = ([] if others else stored_devices(store)) or fleet_devices(config)
            else:
                config.fleet.check_for_workers()
                if not others:
                    config = _with_devices(config, store.state.boards)
            with ExitStack() as searching:
                with_seeds = not store.state.seeds_complete
                original, source = _load(config, searching, with_seeds=with_seeds)
                fleet = searching.enter_context(
                    _open_fleet(devices, config, owner, reporter, context, need_all=False)
                    if cluster is None
                    else cluster.open(config, owner, reporter)
                )
                changed = check_same_devices(config, fleet, store)
                sides = resolve_pair(config, original, fleet)
                _with_probe(config.search, original)
                answers = answer_digest(original, sides[0].spec)
                changed += check_same_answers(store.environment, answers)
                changes_allowed = [notice, check_forced(changed, force=force)]
                notices = [one for one in changes_allowed if one]
                found = environment(config.search) | answers
                if cluster is not None:
                    notices += cluster.check_environments(
                        found, allow_mixed=config.fleet.allow_mixed
                    )
                check_one_model(fleet)
                store.set_campaign(config.model_dump(mode="json"))
                if cluster is None:
                    store.state.devices = [_described(device) for device in devices]
                store.add_environment(found)
                campaign = _campaign(config, original, fleet, sides, store, reporter, cluster)
                campaign.run(source, notices, is_new=False)
        elif is_finished(store):
            for notice in _read_all(store, with_samples=check_samples):
                reporter(Notice(notice))
            reporter(Notice(NOTHING_LEFT.format(campaign_text(folder))))
        elif notice := check_forced(check_unchanged(config, store), force=force):
            store.add_notice(notice)
            reporter(Notice(notice))
        _finish(after, store, reporter, allow_disagreement=config.allow_disagreement)
    return folder


def _read_all(store: Store, *, with_samples: bool) -> Sequence[str]:
    """Read all rows that a report is made of; return a notice where samples can't be shown.

    Raises StoreError where a row is damaged.
    """
    rest = (store.replays(), store.telemetry(), store.survey(), store.surveyed_seeds())
    deque(chain(*rest), maxlen=0)
    for name in store.state.references:
        deque(store.reference_answers(name), maxlen=0)
    _ = store.state.faults, store.models, store.environment, store.devices()
    seeds = {seed.id: seed.sample for seed in store.seeds()}
    shown: set[str] = set()
    for one in store.outcomes():
        if one.trigger is not None or one.status in TRIGGERS:
            shown |= {seeds[one.seed_id], one.trigger or ""} - {""}
    reader = SampleReader(store.get_sample)
    for digest in sorted(shown) if with_samples else ():
        reader.get(digest)
    return reader.notices


def check_files(config: CampaignConfig) -> None:
    """Raise UsageError where a model's file isn't there, or a repair's can't be read."""
    further = other_originals(config.search.strategy, config.search.options)
    for path in (config.original.path, config.deployed.path, config.control_model, *further):
        if path is not None and path.is_dir():
            raise UsageError(f"{path} is a folder; name the model file in it")
        if path is not None and not path.is_file():
            raise UsageError(f"there is no model file {path}")
        if path in further and path.samefile(config.original.path):
            raise UsageError(f"the further model {path} is the original itself: name another one")
    if config.deployed.repair is not None:
        load_repair(config.deployed.repair)


def check_families(config: CampaignConfig) -> None:
    """Raise UsageError for a family of the survey that there is neither for images nor audio."""
    of_audio = families_for("audio")
    families_for("image", [family for family in config.survey.families if family not in of_audio])


def _finish(
    after: After | None, store: Store, reporter: Reporter, *, allow_disagreement: bool
) -> None:
    """Call `after` where the search is finished, with the resolved configuration.

    Raises PreflightError where the pair looks wrong, once its campaign is done; `allow_disagreement`
    accepts it from then on.
    """
    if after is not None and store.state.finished and not is_finished(store):
        after(config_from(store.campaign, str(store.folder)), store, reporter)
    if not (problem := store.state.disagreement) or not store.state.finished:
        return
    if allow_disagreement:
        store.state.disagreement = ""
        return
    error = PreflightError(DISAGREES.format(problem))
    error.folder = store.folder
    raise error


def _load(
    config: CampaignConfig, stack: ExitStack, *, with_seeds: bool
) -> tuple[OriginalModel, SeedSource | None]:
    """Return the loaded original and the source of the seeds."""
    strategy_of(config)  # raises where it can't be built, before anything is made
    original = stack.enter_context(opened_original(config))
    return original, seed_source(config, original) if with_seeds else None


def _open_fleet(
    devices: Sequence[Device],
    config: CampaignConfig,
    owner: LeaseOwner,
    reporter: Reporter,
    context: RunContext,
    *,
    need_all: bool,
) -> Fleet:
    reporter(Stage("device", names_text([device.name for device in devices])))
    return Fleet.open(
        devices,
        config,
        owner,
        on_upload=reporter.show_upload,
        on_notice=reporter.queue_notice,
        need_all=need_all,
        **context.reach,
    )


def _campaign(
    config: CampaignConfig,
    original: OriginalModel,
    fleet: Fleet,
    sides: tuple[ModelInterface, ModelInterface],
    store: Store,
    reporter: Reporter,
    cluster: Cluster | None,
) -> Campaign:
    """Return the stages of a campaign: with its own devices, or with those of workers."""
    if cluster is None:
        return Campaign(config, original, fleet, sides, store, reporter)
    stated = list(config.devices) if "devices" in config.model_fields_set else None
    store.state.boards = stated
    return cluster.campaign(config, original, sides, store, reporter)


def _with_devices(config: CampaignConfig, names: Sequence[str] | None) -> CampaignConfig:
    """Return a configuration that states these devices, or none."""
    fields = config.model_fields_set - {"devices"}
    if names is not None:
        return config.model_copy(update={"devices": tuple(names)})
    return CampaignConfig.model_construct(fields, **dict(config))


def _described(device: Device) -> dict[str, Any]:
    """Return a device's inventory entry as JSON: only stated fields, with absolute paths."""
    files = {
        field: path.absolute()
        for field in ("key", "known_hosts", "ssh_config")
        if (path := getattr(device, field)) is not None
    }
    return device.model_copy(update=files).model_dump(mode="json", exclude_unset=True)


def stored_devices(store: Store) -> list[Device]:
    """Return the stored devices of the campaign; none where they are not stored yet.

    Raises UsageError where the plug-in of a device's transport or runtime is not installed.
    """
    known = store.state.devices
    with decoding(store.folder, "the fact 'devices'"):
        for one in known:
            plugins.check_installed("transport", one.get("transport", "ssh"), BUILT_IN_TRANSPORTS)
            plugins.check_installed("runtime", one.get("runtime") or RUNTIMES[0], RUNTIMES)
        return [Device.model_validate(one) for one in known]


@contextmanager
def opened_original(config: CampaignConfig) -> Iterator[OriginalModel]:
    """Yield the loaded original model, with the inputs fixed that samples don't become.

    Raises UsageError where they don't fit it, ModelError, RuntimeMissingError among them.
    """
    original = OriginalModel(
        config.original.path,
        config.original.runtime or runtime_for(config.original.path),
        config.original.options,
        timeout_s=config.original_timeout_s,
    )
    try:
        chosen = chosen_input(config.original, original.inputs, "the original model")
        original.fix_inputs(chosen.given)
        yield original
    finally:
        original.close()


def _with_probe(search: SearchConfig, original: OriginalModel) -> SearchConfig:
    """Return a search whose further originals are named by their full paths.

    Raises UsageError where it asks a probe of the original that can't answer.
    """
    probe = probe_of(search.strategy, search.options)
    if not probe:
        return search
    others = [str(path) for path in other_originals(search.strategy, search.options)]
    original.check_probe(probe, others)
    options = with_full_paths(search.strategy, search.options)
    return search.model_copy(update={"options": options})
