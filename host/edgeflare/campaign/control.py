"""The control of a campaign: the same search, where every trigger found is a false alarm.

It searches from the same seeds for deviations of the original from itself, or from a float copy of
it, computed in another way. Of float models the last bits of the answers differ, and what decides
differently there does so by rounding. Weights of 8 bits in an otherwise float ``.tflite`` file
(dynamic range) are more: XNNPACK and TensorFlow Lite's own kernels quantise what goes into them
differently. Neither is what compression did to the deployed model. The control is a campaign of its
own, in the folder ``control`` of the campaign's.
"""

import filecmp
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.answers.oracles import MARGIN_FLOOR, traits_of
from edgeflare.campaign import executor
from edgeflare.campaign.context import RunContext
from edgeflare.campaign.events import Event, FleetStatus, Notice, Progress, Reporter, Stage, silent
from edgeflare.campaign.fleet import Fleet, LeaseOwner
from edgeflare.campaign.pair.model_pair import resolve_pair
from edgeflare.campaign.seeds import copy_partners
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.fleet import FleetConfig
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.campaign.settings.templates import FOLDER, demo_config
from edgeflare.campaign.stages import not_interrupted, state_after
from edgeflare.campaign.status import control_folder, count_alarms
from edgeflare.devices import LOCAL, DeviceStatus, runtime_for
from edgeflare.errors import EdgeFlareError, ModelError, PreflightError, StrategyError, UsageError
from edgeflare.models import InputOptions
from edgeflare.models.image_input import options_in_file, scaling_of_range
from edgeflare.statistics import rounded_up
from edgeflare.store import SeedInput, Store
from edgeflare.store.creation import remove_folder
from edgeflare.store.database import batches, decoding, translate_errors
from edgeflare.store.location import DATABASE_NAME, POINTER_NAME, is_campaign
from edgeflare.store.lock import LOCK_NAMES
from edgeflare.words import campaign as words

_PERMANENT = (ModelError, PreflightError, StrategyError)
"""Errors that a second attempt would repeat, since the control's models and search are fixed."""
_PREFIX = "control: "


def control_config(config: CampaignConfig, folder: Path) -> CampaignConfig:
    """Return the configuration of the control of a campaign in this folder.

    Raises ModelError where outputs are named and the copy to compare with can't be read.
    """
    return config.model_copy(
        update={
            "deployed": control_model(config),
            "devices": (LOCAL.name,),
            "python": None,
            "inventory": None,
            "out": control_folder(folder),
            "fleet": FleetConfig(),
            "limits": LimitsConfig(),
            "survey": config.survey.model_copy(update={"references": ()}),
            "concurrency": None,
            "one_trip": False,
            "control": False,
            "control_model": None,
        }
    )


def check_control(config: CampaignConfig) -> None:
    """Raise the control's errors before the search: a model that can't be run, or doesn't fit.

    Raises UsageError, too, where the copy to compare with is the deployed model.
    """
    if not config.control:
        return
    executor.check_files(config)
    copy, deployed = config.control_model, config.deployed.path
    if copy is not None and filecmp.cmp(copy, deployed, shallow=False):
        raise UsageError(
            f"the control model {copy} is the deployed model, so that every trigger would count as "
            "a false alarm: name a float copy of the original with --control-model, or leave that "
            "out to compare the original with itself"
        )
    with ExitStack() as stack:
        original = stack.enter_context(executor.opened_original(config))
        stack.enter_context(_prefixed_errors())
        in_file = options_in_file(original.metadata, str(original.path))
        own = (
            in_file.is_audio or in_file.has_scaling or scaling_of_range(original.input).has_scaling
        )
        if not own and not config.original.input.is_audio:
            # the options in the deployed model's file aren't known yet; any scale will do here
            config = _scaled(_scaled(config, config.deployed.input), InputOptions(scale="1/255"))
        config = control_config(config, Path())
        owner = LeaseOwner(uuid.uuid4().hex, "a control")
        fleet = stack.enter_context(Fleet.open([LOCAL], config, owner, need_all=True))
        resolve_pair(config, original, fleet)


def run_control(
    config: CampaignConfig, store: Store, reporter: Reporter, *, force: bool = False
) -> None:
    """Run, or resume, the control of a campaign whose search is finished.

    A control that can't be run, now or later, is reported as a notice, and the campaign finishes
    without it. Raises an `EdgeFlareError` of any other kind; `resume_campaign` goes on from there.
    """
    folder = control_folder(store.folder)
    seen: tuple[DeviceStatus, ...] = ()

    def pass_on(event: Event) -> None:
        nonlocal seen
        if isinstance(event, FleetStatus):
            seen = event.devices
        elif isinstance(event, Stage):
            reporter(Stage("control", f"{event.name}: {event.detail}", event.total))
        elif not isinstance(event, Notice):
            reporter(event)
        elif event.resume is None:  # else the whole campaign is to be resumed
            reporter(Notice(f"{_PREFIX}{event.text}"))

    context = RunContext(progress=pass_on, name=f"{store.folder.name}, its control")
    reporter.watch(store, lambda: seen)
    try:
        try:
            with _prefixed_errors():
                if _can_resume(store):
                    executor.resume(
                        folder, fill=partial(_fill, store), force=force, context=context
                    )
                else:
                    executor.start(
                        control_config(scaled_as_stored(config, store), store.folder),
                        devices=[LOCAL],
                        fill=partial(_fill, store),
                        context=context,
                    )
                _warn_of_alarms(store, config, reporter)
        except _PERMANENT as error:
            why = str(error).removeprefix(_PREFIX)
            _notice(words.CANT_RUN.format(why), store, reporter)
            store.state.control_refused = why
        store.state.control_finished = True
    except BaseException as error:
        with not_interrupted():
            reporter.end(state_after(error), str(error))
            reporter(Notice(words.UNFINISHED, resume=store.folder))
        raise
    reporter.end("finished")


def _warn_of_alarms(store: Store, config: CampaignConfig, reporter: Reporter) -> None:
    """Warn of false alarms, once."""
    with Store.open(control_folder(store.folder)) as control:
        alarms = count_alarms(control)
    copy = None if config.control_model is None else config.control_model.name
    if alarms.survey_alarms:
        text = words.survey_alarms(alarms.survey_alarms, alarms.surveyed, copy)
        _notice(text, store, reporter)
    if alarms.false_alarms:
        setting = traits_of(config.search.oracle).setting
        above = None
        if setting == MARGIN_FLOOR and alarms.largest_margin is not None:
            above = rounded_up(alarms.largest_margin)
        text = words.alarms(
            (alarms.false_alarms, alarms.searches),
            (setting, getattr(config.search, setting)),
            copy,
            above,
        )
        _notice(text, store, reporter)


def _notice(text: str, store: Store, reporter: Reporter) -> None:
    if text not in store.notices():
        reporter.notice(text)


def scaled_as_stored(config: CampaignConfig, store: Store) -> CampaignConfig:
    """Return the configuration with the original's scaling of pixels, whichever file it came from."""
    return _scaled(config, _scaling_in(store))


def _scaling_in(store: Store) -> InputOptions:
    """Return the pixel scaling of the campaign's original, whichever file it came from."""
    with decoding(store.folder):
        spec = store.models["original"]["input"]
        if "size" not in spec:  # of audio
            return InputOptions()
        numerator, denominator = spec["scale"]
        scale = numerator if denominator == 1 else f"{numerator!r}/{denominator!r}"
        return InputOptions(scale=scale, mean=spec["mean"], std=spec["std"])


def _scaled(config: CampaignConfig, known: InputOptions) -> CampaignConfig:
    """Return the configuration with this scaling of the original's pixels where it states none."""
    stated = config.original.input
    if stated.is_audio or stated.has_scaling or not known.has_scaling or known.is_audio:
        return config
    scaling = {"scale": known.scale, "mean": known.mean, "std": known.std}
    original = config.original.model_copy(update={"input": stated.model_copy(update=scaling)})
    return config.model_copy(update={"original": original})


def control_model(config: CampaignConfig) -> ModelConfig:
    """Return the model that stands in for the deployed one: the original by other kernels, or its copy.

    Raises UsageError for a runtime with one kind of kernels alone.
    """
    original, path = config.original, config.control_model
    if path is None or path == original.path:
        runtime = original.runtime or runtime_for(original.path)
        options = {**original.options, **_other_arithmetic(runtime, original.options)}
        return original.model_copy(update={"runtime": runtime, "options": options})
    # What is stated of the original's pixels holds for its copy; the layout may differ.
    copy = ModelConfig(
        path=path,
        input=original.input.model_copy(update={"layout": None}),
        input_name=original.input_name,
        fixed_inputs=original.fixed_inputs,
        output=original.output,
        decoder=original.decoder,
    )
    name = original.output_name
    if name is None or name not in _outputs(config.model_copy(update={"original": copy})):
        return copy
    return copy.model_copy(update={"output_name": name})


def _outputs(config: CampaignConfig) -> list[str]:
    """Return the names of the original model's outputs. Raises ModelError."""
    with executor.opened_original(config) as original:
        return [tensor.name for tensor in original.outputs]


def _other_arithmetic(runtime: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options that make a runtime compute the same model in another order.

    Raises UsageError for a runtime with one order alone.
    """
    if runtime == "onnx":
        plain = options.get("graph_optimization") == "none"
        return {"graph_optimization": "all" if plain else "none"}
    if runtime == "torch":
        return {"onednn": not options.get("onednn", True)}
    if runtime != "tflite":
        raise UsageError(
            f"a control runs the original by two kinds of kernels, and {runtime} has one: name an "
            "equal copy in another format as `control_model` (--control-model)"
        )
    if options.get("kernels") == "reference":
        return {"kernels": "default"}
    return {"delegate": not options.get("delegate", True)}


def _can_resume(store: Store) -> bool:
    """Whether there is a control to resume; an incomplete folder of one is deleted."""
    folder = control_folder(store.folder)
    if store.state.control_begun:
        if is_campaign(folder):
            return True
        store.state.control_begun = False
    with translate_errors(folder):
        if folder.is_dir() and all(map(_is_of_a_campaign, folder.iterdir())):
            remove_folder(folder)
    return False


def _is_of_a_campaign(path: Path) -> bool:
    return path.name in LOCK_NAMES or path.name.startswith(("samples", DATABASE_NAME, POINTER_NAME))


def _fill(store: Store, control: Store) -> None:
    """Copy the campaign's seeds into the control: their files may be deleted by now."""
    store.state.control_begun = True
    if store.sample_rate is not None:
        control.set_sample_rate(store.sample_rate)
    known = control.seed_ids()
    missing = (seed for seed in store.seeds() if seed.id not in known)
    for batch in batches(missing):
        control.add_seeds(
            SeedInput(seed.id, store.get_sample(seed.sample), seed.label, seed.file_sha256)
            for seed in batch
        )
    if control.campaign["seeds"].get("prioritise") not in (None, "drift"):
        copy_partners(store, control)
    if origins := store.state.seed_origins:
        control.state.seed_origins = origins
    control.complete_seeds([], [])


@contextmanager
def _prefixed_errors() -> Iterator[None]:
    """Prefix the text of every error: it is the control's."""
    try:
        yield
    except EdgeFlareError as error:
        error.args = (f"{_PREFIX}{error}", *error.args[1:])
        raise


SELFTEST_STRATEGY = "boundary"
_OPTIONS = {
    "crossing": "least-l2",
    "effort": 32,
    "candidates": 1,
}  # all options are stated, so none is measured
_MAX_QUERIES = 25


@dataclass(frozen=True)
class SelfTestPair:
    """One pair's result: the `searches` that queried the device, and the `triggers` found.

    `of_one_model`: its two models differ by rounding alone, so that each trigger is a false alarm.
    """

    name: str
    searches: int
    triggers: int
    of_one_model: bool

    @in_json
    def false_alarms(self) -> int:
        """The number of triggers found where none is expected."""
        return self.triggers if self.of_one_model else 0


@dataclass(frozen=True)
class SelfTest(JsonRecord):
    """The result of the self-test: its search's settings, and the result of each pair."""

    strategy: str
    margin_floor: float
    seconds: float
    pairs: tuple[SelfTestPair, ...]

    @in_json
    def problems(self) -> tuple[str, ...]:
        """What is wrong, a sentence each; none where EdgeFlare can be relied on here."""
        pairs, alike = self.pairs, [one for one in self.pairs if one.of_one_model]
        problems = [words.rounding_passes(p.name, p.false_alarms) for p in pairs if p.false_alarms]
        others = [one for one in pairs if not one.of_one_model and not one.triggers]
        problems += [words.NOTHING_TO_SEE.format(one.name) for one in others]
        problems += [words.NO_SEARCH.format(one.name) for one in alike if not one.searches]
        return tuple(problems)

    @in_json
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


def run_selftest(*, seeds: int = 20, progress: Progress = silent) -> SelfTest:
    """Search from the demo's first `seeds` (1 to 100) images with three models on this machine.

    They are the original itself, computed in another order; its float copy in another runtime; and
    its int8 version. Nothing is left on disk. Raises an `EdgeFlareError` of any kind.
    """
    began = time.monotonic()
    found = []
    with TemporaryDirectory(prefix="edgeflare-selftest-", ignore_cleanup_errors=True) as scratch:
        for name, config, of_one_model in _pairs(seeds, Path(scratch)):
            context = RunContext(progress=_named_selftest(name, progress))
            folder = executor.start(config, devices=[LOCAL], context=context)
            with Store.open(folder) as store:
                alarms = count_alarms(store)
            found.append(SelfTestPair(name, alarms.searches, alarms.false_alarms, of_one_model))
    search = config.search
    return SelfTest(search.strategy, search.margin_floor, time.monotonic() - began, tuple(found))


def _pairs(seeds: int, scratch: Path) -> Iterator[tuple[str, CampaignConfig, bool]]:
    """Yield each pair's name, its configuration, and whether both are the same model."""
    demo = demo_config(seeds=seeds, out=scratch / "int8")
    search = demo.search.model_copy(
        update={
            "strategy": SELFTEST_STRATEGY,
            "options": _OPTIONS,
            "max_queries": _MAX_QUERIES,
            "timeout_s": 0.0,
        }
    )
    demo = demo.model_copy(update={"search": search, "survey": demo.survey.off})
    copied = demo.model_copy(update={"control_model": FOLDER / "original.tflite"})
    yield words.ITSELF, control_config(demo, scratch / "itself"), True
    yield words.FLOAT_COPY, control_config(copied, scratch / "copy"), True
    yield words.INT8_VERSION, demo, False


def _named_selftest(name: str, progress: Progress) -> Progress:
    """Return a progress function that names the pair in each stage and drops advice to resume."""

    def report(event: Event) -> None:
        if isinstance(event, Stage):
            event = event._replace(detail=f"{name}, {event.detail}")
        if not (isinstance(event, Notice) and event.resume):
            progress(event)

    return report
