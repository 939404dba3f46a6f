"""Explains a campaign: its findings are sent down the ladder, and each is charged to a cause."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from edgeflare.answers.metrics import numbers
from edgeflare.answers.oracles import is_measured
from edgeflare.answers.parts import later
from edgeflare.campaign import executor
from edgeflare.campaign.context import RunContext, RunOptions
from edgeflare.campaign.control import scaled_as_stored
from edgeflare.campaign.events import Event, Notice, Progress, Stage
from edgeflare.campaign.fleet import LeaseOwner, fleet_devices
from edgeflare.campaign.pair.health import unusable_answers
from edgeflare.campaign.pair.triage import stored_triage
from edgeflare.campaign.provenance import check_same_models
from edgeflare.campaign.replay.inputs import ReplaySource, replay_source, survey_id
from edgeflare.campaign.replay.reproduce import Answers, replay_answers, stored_answers
from edgeflare.campaign.replay.run import resume_import, run_replay
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.campaign.status import queries_before
from edgeflare.campaign.survey.inputs import confirmed_faults
from edgeflare.devices import Device, DeviceSession, open_device
from edgeflare.errors import (
    AgentDiedError,
    AuthenticationError,
    DeviceAwayError,
    DeviceBusyError,
    DeviceDiskFullError,
    DeviceTimeoutError,
    EdgeFlareError,
    HostKeyError,
    ModelError,
    UnreachableError,
    UsageError,
)
from edgeflare.explanation.charge import ORIGINAL, UNCHARGED, charge, deviates
from edgeflare.explanation.device_tensors import READABLE, DeviceGraph, are_known, own_matches
from edgeflare.explanation.ladder import Rung, ladder_of
from edgeflare.explanation.layers import ReadFinding, ReadModel, contributions
from edgeflare.explanation.results import (
    DEVICE,
    DEVICE_QUERIES,
    EXACT,
    EXPLANATION_FOLDER,
    NAME,
    ExplainedFinding,
    Explanation,
    Layers,
    Remark,
    completed,
    stored_explanation,
)
from edgeflare.models import OutputReader, TensorInfo, spec_from_json
from edgeflare.models.tensors import open_graph
from edgeflare.models.tensors.tflite_graph import TFLiteGraph
from edgeflare.store import CampaignLock, Store, folder_at
from edgeflare.store.location import deletion_text, is_campaign
from edgeflare.store.records import ReplayInput
from edgeflare.triage.cause import NAME as TRIAGE
from edgeflare.triage.cause import Triage
from edgeflare.types import Output
from edgeflare.words.campaign import NOTHING_TO_EXPLAIN, TENSORS_OF
from edgeflare.words.next_steps import with_step

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SEEDS = 50
_ANOTHER_MODEL = 0.1
"""Share of the seeds on which a float model decides otherwise than the original at most."""
_SEEDS_ON_DEVICE = 10
_IDENTITY = ("path", "runtime", "options", "input")
"""What of a rung's model must be as it was; a replay fills in what its outputs are."""
_PASSING = (
    *(AgentDiedError, AuthenticationError, DeviceAwayError, DeviceBusyError, DeviceDiskFullError),
    *(DeviceTimeoutError, HostKeyError, UnreachableError),
)
"""Errors for which a device is asked again by the next explanation."""
_Item = TypeVar("_Item")


def explain_campaign(
    folder: Path,
    config: CampaignConfig,
    *,
    float_model: Path | None = None,
    device_queries: int = DEVICE_QUERIES,
    **run: "Unpack[RunOptions]",
) -> Explanation:
    """Charge each finding of a campaign to a cause; store the result there and return it.

    Findings are triggering inputs and confident deviations of the survey. `config` is made by
    `replay_config`. `float_model` is the model before compression, in the deployed model's format.
    Where its devices are several of a "replicate" fleet, each is asked; `edgeflare.analysis.agreements`
    compares them, see `explained_devices`. At most `device_queries` go to devices: of
    more findings some are left out, evenly. The answers
    of each rung are a replay in the folder ``explanation`` of the campaign's; started again, an
    interrupted explanation goes on, and a finished one sends nothing.

    Raises UsageError where the campaign has no findings, was run with other models, or was explained
    with other settings, and the errors of `run_replay`.
    """
    folder = folder_at(folder).absolute()
    with Store.open(folder) as store, CampaignLock(folder):
        explanation = explained(store, config, RunContext(**run), float_model, device_queries)
        store.add_result(NAME, explanation)
        return explanation


def explained(
    store: Store,
    config: CampaignConfig,
    context: RunContext,
    float_model: Path | None,
    device_queries: int,
) -> Explanation:
    """Return what the findings of a campaign come of, which is locked, see `explain_campaign`."""
    folder = store.folder
    with replay_source(folder) as source:
        if source.kind != "campaign":
            raise UsageError(f"{folder} is a {source.kind}: name the folder of a campaign")
        check_same_models(config, store)
        walk = _Walk(folder, config, store, context)
        explanation = _explained(walk, source, store, float_model, device_queries, context.progress)
        return completed(explanation, store)


def _explained(
    walk: "_Walk",
    source: ReplaySource,
    store: Store,
    float_model: Path | None,
    device_queries: int,
    progress: Progress,
) -> Explanation:
    ladder, device_rungs, remarks = ladder_of(walk.config, store, walk.devices, float_model)
    inputs = {one.id: one for one in source.inputs()}
    found = [name for name, one in inputs.items() if one.kind == "trigger"]
    if not found:
        unusable = (problem.words for problem in unusable_answers(store))
        why = next(unusable, NOTHING_TO_EXPLAIN)
        triaged = store.result(TRIAGE, Triage)
        causes = () if triaged is None else triaged.causes
        why += "".join(f"; {with_step(cause)}" for cause in causes[:1])
        raise UsageError(f"{store.folder} has no finding: {why}")
    cost = (1 + walk.config.search.confirmations) * (1 + len(device_rungs))
    cost += _run_one_file(ladder) and ladder[-2].deployed.runtime == "tflite"
    if walk.config.fleet.mode == "replicate":
        cost *= len(walk.devices)
    chosen = _evenly(found, device_queries // cost)
    if not chosen:
        raise UsageError(
            f"--device-queries {device_queries} is too few: one finding takes up to {cost}"
        )
    notices: list[Remark | str] = [*remarks]
    try:
        stored_triage(store, walk.config, progress)
    except (UsageError, ModelError) as error:
        notices.append(Remark("not triaged", {"why": str(error)}))
    begun = walk.begun(ladder[0], set(found))
    if begun is not None and set(chosen) != begun:
        chosen = [name for name in found if name in begun]
        folder = deletion_text(store.folder / EXPLANATION_FOLDER)
        notices.append(Remark("begun before", {"folder": folder}))
    elif len(chosen) < len(found):
        limits = {"queries": device_queries, "findings": len(chosen)}
        notices.append(Remark("few queries", {**limits}))
    rungs: dict[Rung, Mapping[str, Answers]] = {}
    seeds = _evenly([name for name, one in inputs.items() if one.kind == "seed"], _SEEDS)
    by_distance = is_measured(dict(walk.config.search))
    for rung in ladder:
        is_float_model = rung.kind == "conversion" and not rung.runs_file
        asked = [*chosen, *(seeds if rung.kind == "preprocessing" or is_float_model else [])]
        answers = _of_each(walk.answers(rung, asked), asked, inputs)
        if is_float_model:
            told = [_deviating(one, seeds, by_distance) for one in (*rungs.values(), answers)]
            known = [of_it[-1] for of_it in zip(*told, strict=True) if True not in of_it[:-1]]
            if known.count(True) > _ANOTHER_MODEL * (len(known) - known.count(None)):
                numbers_of_it = {"deviating": known.count(True), "seeds": len(known)}
                named = {"file": rung.deployed.path.name}
                notices.append(Remark("another float model", {**named, **numbers_of_it}))
        if rung.kind != "preprocessing" or _predicts(
            answers, store, {inputs[name].seed_id: name for name in seeds}
        ):
            rungs[rung] = answers
        else:
            notices.append(Remark("preprocessing unknown"))
    stored = stored_answers(store, {name: inputs[name] for name in chosen})
    faults = {
        survey_id(member): entry.words
        for *_, entry, members in confirmed_faults(store)
        for member in members
    }

    def charged(name: str, questions: Mapping[Rung, Mapping[str, Answers]]) -> ExplainedFinding:
        return charge(
            inputs[name],
            rungs,
            questions,
            stored=stored.get(name, {}),
            fault=faults.get(name, ""),
            is_measured=by_distance,
        )

    first = {name: charged(name, {}) for name in chosen}
    try:
        layers = walk.layers(list(rungs), list(first.values()), store)
    except (UsageError, ModelError) as error:
        layers = None
        notices.append(Remark("layers unknown", {"why": str(error)}))
    if layers is not None and len(layers.unmatched) > len(layers.layers):
        files = {"original": layers.original, "deployed": layers.deployed}
        notices.append(Remark("another network", {**files}))
    of_device = [
        name for name, one in first.items() if one.rung == DEVICE and one.cause not in UNCHARGED
    ]
    further = {
        rung: _of_each(walk.answers(rung, of_device), of_device, inputs)
        for rung in device_rungs
        if of_device
    }
    device_layers: Layers | None = None
    unread: tuple[Remark, ...] | str = ()
    if of_device:
        some = [first[name] for name in of_device]
        device_layers, unknown, unread = walk.device_layers(
            list(rungs), some, store, device_queries
        )
        notices += unknown
    findings = tuple(charged(name, further) for name in chosen)
    if saturated := sum(finding.rung == EXACT for finding in findings):
        notices.append(Remark("saturated", {"findings": saturated}))
    return Explanation(
        findings=findings,
        rungs=tuple((one.name, one.kind, one.file) for one in (*rungs, *further)),
        left_out=len(found) - len(chosen),
        device_queries=walk.device_queries,
        notices=tuple(notices),
        layers=layers,
        device_layers=device_layers,
        device_unread=unread,
        replay=walk.stored_as(ladder[-1]),
    )


def _of_each(
    answers: Mapping[str, Answers], ids: Sequence[str], inputs: Mapping[str, ReplayInput]
) -> Mapping[str, Answers]:
    """Return the answers to all inputs of these ids: a replay has those of an input once.

    Several findings may be the same input: replicas that found it, or inputs of the survey.
    """

    def key(name: str) -> tuple[str, str, str]:
        one = inputs[name]
        return one.kind, one.seed_id, one.sample

    known = {key(name): of_it for name, of_it in answers.items()}
    return {name: known[key(name)] for name in ids if key(name) in known}


def _deviating(
    answers: Mapping[str, Answers], ids: Sequence[str], by_distance: bool
) -> list[bool | None]:
    """Return whether a rung's model decides otherwise than the original, of each of these inputs."""
    known = (next(iter(answers.get(name, {}).values()), None) for name in ids)
    return [deviates(one, by_distance) for one in known]


def _predicts(answers: Mapping[str, Answers], store: Store, seeds: Mapping[str, str]) -> bool:
    """Whether the original with the deployed model's preprocessing answers more like that one.

    `seeds` are the ids in `answers` by the seed's own. Without any the preprocessing is judged by
    what is stated: it differs.
    """
    own, other = [], []
    for seed in store.seeds():
        answer = next(iter(answers.get(seeds.get(seed.id, ""), {}).values()), None)
        if answer is None or answer.deployed is None or seed.outputs is None:
            continue
        original, deployed, _ = seed.outputs
        if original is not None and deployed is not None:
            own.append(_distance(original, deployed))
            other.append(_distance(answer.deployed, deployed))
    return not own or float(np.mean(other)) <= float(np.mean(own))


def _distance(first: Output, second: Output) -> float:
    return float(np.abs(numbers(first) - numbers(second)).sum())


def _evenly(items: Sequence[_Item], most: int) -> list[_Item]:
    """Return at most so many items, from all parts of the sequence."""
    if len(items) <= most:
        return list(items)
    return [items[len(items) * place // most] for place in range(most)]


def _run_one_file(rungs: Sequence[Rung]) -> bool:
    """Whether the rung before the device's runs the deployed file, too: on this machine."""
    return len(rungs) > 1 and rungs[-2].deployed.path == rungs[-1].deployed.path


def _unknown_on(device: str, error: EdgeFlareError) -> Remark:
    return Remark("device layers unknown", {"device": device, "why": str(error)})


def _report(progress: Progress, told: set[str], rung: Rung, event: Event) -> None:
    """Pass on a replay's events under the name of its rung, without advice to resume it.

    Of notices those that are not in `told` yet, and none of another preprocessing: what they doubt
    is the deployed model's, as stated.
    """
    if isinstance(event, Stage):
        asked = later("edgeflare.words.causes:step_text", rung.name, rung.file)
        event = event._replace(detail=f"{asked}, {event.detail}")
    if isinstance(event, Notice):
        if event.resume or rung.kind == "preprocessing" or event.text in told:
            return
        told.add(event.text)
    progress(event)


class _Walk:
    """Sends inputs on rungs, a replay each, or reads what is there of them."""

    def __init__(
        self, folder: Path, config: CampaignConfig, store: Store, context: RunContext
    ) -> None:
        self.config = scaled_as_stored(config, store)
        self._others = [*config.devices] != [*store.campaign["devices"]]
        self.devices = fleet_devices(config) if self._others else executor.stored_devices(store)
        self.device_queries = 0
        self._is_away = False
        self._told: set[str] = set()
        self._models: dict[Rung, Mapping[str, Any]] = {}
        self._folder = folder
        self._context = context

    def folder_of(self, rung: Rung) -> Path:
        """Return the folder of a rung's replay; other devices than the campaign's have their own."""
        name = rung.name
        if rung.asks_device and self._others:
            digest = hashlib.sha256(json.dumps(self.config.devices).encode()).hexdigest()
            name = f"{name}-{digest[:8]}"
        return self._folder / EXPLANATION_FOLDER / name

    def stored_as(self, rung: Rung) -> str:
        """Return the path of a rung's replay in the campaign's folder."""
        return self.folder_of(rung).relative_to(self._folder).as_posix()

    def begun(self, rung: Rung, findings: set[str]) -> set[str] | None:
        """Return which findings, of these ids, a rung was begun with, None where it was not."""
        folder = self.folder_of(rung)
        if not is_campaign(folder):
            return None
        with Store.open(folder) as store:
            replay = store.state.replay_start
        return None if replay is None else findings & set(replay.selected)

    def answers(self, rung: Rung, ids: Sequence[str]) -> Mapping[str, Answers]:
        """Return both models' answers to inputs, of these ids, on a rung."""
        folder = self.folder_of(rung)
        config = rung.configure(self.config, folder)
        context = replace(
            self._context,
            progress=partial(_report, self._context.progress, self._told, rung),
            name=f"{self._folder.name}, its explanation",
        )
        if is_campaign(folder):
            with Store.open(folder) as store:
                wanted = config.deployed.model_dump(mode="json")
                known = store.campaign["deployed"]
                if any(known[key] != wanted[key] for key in _IDENTITY):
                    raise UsageError(
                        f"{self._folder} was explained with other models or options: delete "
                        f"{deletion_text(folder.parent)} to explain it anew"
                    )
                finished = store.state.finished
            if not finished:
                executor.resume(folder, fill=resume_import, context=context)
        else:
            folder.parent.mkdir(exist_ok=True)
            run_replay(self._folder, config, ids=ids, name=context.name, **context.options)
        with Store.open(folder) as store:
            if rung.asks_device:
                self.device_queries += sum(queries_before(store).values())
            self._models[rung] = store.models
            return replay_answers(store, set(ids))

    def layers(
        self, rungs: Sequence[Rung], findings: Sequence[ExplainedFinding], store: Store
    ) -> Layers | None:
        """Return what layers contribute to findings that come of the deployed file; None: to none.

        Raises UsageError or ModelError where tensors can't be read.
        """
        place = next((n for n, one in enumerate(rungs) if one.runs_file), None)
        if place is None:
            return None
        of_file = [finding for finding in findings if finding.cause == rungs[place].kind]
        if not of_file:
            return None
        charged = [one for one in of_file if one.contributions]
        if not charged:
            raise UsageError(
                "the models' answers have no margin of one class over another to follow through the layers: "
                "they are text, boxes, values or labels alone"
            )
        after, before = rungs[place], rungs[place - 1] if place else None
        if before is not None and before.kind in ("preprocessing", "conversion"):
            start, first = before.name, self._read_model(before, "deployed", before.deployed)
        else:
            start, first = ORIGINAL, self._read_model(after, "original", self.config.original)
        second = self._read_model(after, "deployed", after.deployed)
        asked = [
            ReadFinding(
                one.id,
                partial(store.get_sample, one.sample),
                one.labels,
                (one.margin_on(start), one.margin_on(after.name)),
            )
            for one in charged
            if one.labels is not None
        ]
        earlier = stored_explanation(store)
        known = None if earlier is None else earlier.layers
        if (
            known is not None
            and (known.original, known.deployed) == (first.name, second.name)
            and known.contributions.keys() == {one.id for one in charged}
            and are_known(known, asked)
        ):
            return known
        self._context.progress(Stage("layers", f"tensors of {second.name}"))
        seeds = _evenly([seed.sample for seed in store.seeds()], _SEEDS)
        return contributions(first, second, asked, [store.get_sample(seed) for seed in seeds])

    def device_layers(
        self, rungs: Sequence[Rung], findings: Sequence[ExplainedFinding], store: Store, most: int
    ) -> tuple[Layers | None, Sequence[Remark | str], tuple[Remark, ...] | str]:
        """Return what layers contribute to findings that only the device shows, and notices.

        The last is why no tensors can be read, empty where they can or the device is away: it isn't asked
        again then.

        They are those of one file, from this machine, as the rung before the device's runs it, to the
        device. `most` is the limit of device queries in all. None where it isn't known.
        """
        charged = [one for one in findings if one.contributions and one.labels is not None]
        if not charged or not _run_one_file(rungs):
            return None, [], ()
        earlier = stored_explanation(store)
        if (
            earlier is not None
            and earlier.device_unread
            and earlier.replay == self.stored_as(rungs[-1])
        ):
            unread = earlier.device_unread
            return None, (unread,) if isinstance(unread, str) else unread, unread
        notices: list[Remark] = []
        try:
            layers = self._device_layers(rungs[-2], rungs[-1], charged, store, most, notices)
        except EdgeFlareError as error:
            notices.append(_unknown_on("the device", error))
            return None, notices, ()
        if layers is not None and layers.disturbed:
            notices.append(Remark("disturbed", {"findings": len(layers.disturbed)}))
        return layers, notices, tuple(notices) if layers is None and not self._is_away else ()

    def _device_layers(
        self,
        here: Rung,
        there: Rung,
        charged: Sequence[ExplainedFinding],
        store: Store,
        most: int,
        notices: list[Remark],
    ) -> Layers | None:
        first = self._read_model(here, "deployed", here.deployed)
        if not isinstance(first.graph, TFLiteGraph):
            raise UsageError(f"a device's tensors are read in TFLite models, not in {first.name}")
        asked = {
            one.id: ReadFinding(
                one.id,
                partial(store.get_sample, one.sample),
                one.labels,
                (one.margin_on(here.name), one.margin_on(there.name)),
            )
            for one in _evenly(charged, most - self.device_queries)
            if one.labels is not None
        }
        if not asked:
            raise UsageError(f"--device-queries {most} leaves none for it")
        earlier = stored_explanation(store)
        known = None
        if earlier is not None and earlier.replay == self.stored_as(there):
            known = earlier.device_layers
        if known is not None and are_known(known, asked.values()):
            self.device_queries += known.device_queries
            return known
        with Store.open(self.folder_of(there)) as replay:
            devices = {device.name: device for device in executor.stored_devices(replay)}
            ran = {name: one["runtime"] for name, one in replay.fingerprints().items()}
        output = self._models[there]["deployed"]["output"]["name"]
        assert first.spec is not None  # noqa: S101 - of this machine
        with ExitStack() as stack:
            models: dict[str, ReadModel] = {}
            graphs: list[DeviceGraph] = []
            for name in dict.fromkeys(one.device for one in charged if one.id in asked):
                self._context.progress(Stage("layers", TENSORS_OF.format(first.name, name)))
                try:
                    session = self._session(devices[name], there)
                    stack.callback(session.close)
                    path = there.deployed.path
                    graphs.append(DeviceGraph(path, output, session, first.spec, ran[name]))
                except EdgeFlareError as error:
                    self._is_away |= isinstance(error, _PASSING)
                    notices.append(_unknown_on(name, error))
                    continue
                models[name] = first._replace(graph=graphs[-1], spec=None)
            read = [
                asked[one.id]._replace(deployed=models[one.device])
                for one in charged
                if one.id in asked and one.device in models
            ]
            if not read:
                return None
            if known is not None and are_known(known, read):
                self.device_queries += known.device_queries
                return known
            left = most - self.device_queries - len(read)
            seeds = _evenly([seed.sample for seed in store.seeds()], min(left, _SEEDS_ON_DEVICE))
            try:
                layers = contributions(
                    first,
                    next(iter(models.values())),
                    read,
                    [store.get_sample(seed) for seed in seeds],
                    same=own_matches(first.graph),
                )
            finally:
                queries = sum(graph.queries for graph in graphs)
                self.device_queries += queries
        return replace(layers, device_queries=queries)

    def _session(self, device: Device, rung: Rung) -> DeviceSession:
        """Open a device with the rung's model, so that its tensors can be read."""
        return open_device(
            device,
            rung.deployed.path,
            runtime=rung.deployed.runtime,
            options={**rung.deployed.options, **READABLE},
            lease=LeaseOwner(uuid.uuid4().hex, self._folder.name).lease(device.name),
            **self._context.reach,
        )

    def _read_model(self, rung: Rung, which: str, config: ModelConfig) -> ReadModel:
        """Return a model of a rung whose tensors can be read; `which` of the two it is there."""
        about = self._models[rung][which]
        output = about["output"]
        if config.repair is not None:
            raise UsageError(f"{config.path.name} is repaired: its tensors end before its answers")
        reader = OutputReader(TensorInfo.from_json(output), output["kind"])
        if not reader.has_class_scores:
            raise UsageError(f"{config.path.name} returns no scores")
        return ReadModel(
            config.path.name,
            open_graph(config.path, about["runtime"]["name"], config.options, output["name"]),
            spec_from_json(about["input"]),
            reader,
        )
