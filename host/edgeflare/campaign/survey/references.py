"""Healthy references: models asked about seeds and survey in place of the deployed one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from edgeflare._internal.files import file_sha256
from edgeflare._internal.text import counted
from edgeflare.answers import common_kind
from edgeflare.answers.oracles import Oracle
from edgeflare.campaign.events import Stage, Step
from edgeflare.campaign.queries.stage import CampaignStage
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.survey import INT8, SurveyConfig, float_model
from edgeflare.campaign.status import replica_names
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.errors import InferenceFailedError, ModelError, UsageError
from edgeflare.models import OriginalModel
from edgeflare.models.quantized import (
    CALIBRATED_ON,
    DYNAMIC,
    calibration_inputs,
    check_quantizable,
    make_references,
)
from edgeflare.store import ReferenceAnswer, Store, SurveyRecord, folder_at
from edgeflare.store.database import decoding, translate_errors
from edgeflare.store.location import is_address, is_campaign, split_address
from edgeflare.store.records import OWN, ReferencePhase, SurveyKey
from edgeflare.store.state import Reference
from edgeflare.store.survey import REFERENCES
from edgeflare.types import Output, Sample
from edgeflare.words import campaign as words

_AT_ONCE = 64
_LEAST_SHARED = 0.5
_OPTIONS = {"graph_optimization": "basic"}
"""Integer kernels of some x86-64 CPUs saturate; so quantised values are computed with as floats."""


def check_references(config: CampaignConfig) -> list[str]:
    """Return notices on references that were asked with other settings, before anything is asked.

    Raises UsageError where a reference can't be used; StoreError where it is no campaign.
    """
    names = [_name(one) for one in config.survey.references if one != INT8]
    if len({*names}) < len(names):
        raise UsageError(
            f"two references have one name ({', '.join(names)}), by which reports tell them apart; "
            "rename or copy one"
        )
    notices: list[str] = []
    for reference in config.survey.references:
        if (model := float_model(reference, config.original.path)) is not None:
            check_quantizable(model)
            if not model.is_file():
                raise UsageError(f"there is no model file {model}")
        else:
            notices += _check_campaign(folder_at(reference, stated=False), config)
    return notices


def _check_campaign(folder: Path, config: CampaignConfig) -> list[str]:
    if folder.is_file():
        raise UsageError(
            f"{folder} is a file; a reference is {INT8}, {INT8}:{folder} for int8 models made of "
            "that float model, or a campaign's folder"
        )
    if folder.name.lower().startswith("int") and not folder.exists():
        raise UsageError(f"there is no campaign {folder}; did you mean --reference {INT8}?")
    with Store.open(folder) as store:
        known = store.models.get("original", {}).get("sha256")
        if known != file_sha256(config.original.path):
            raise UsageError(
                f"the reference {folder} has another original than {config.original.path}; name a "
                "campaign of the same original"
            )
        if next(store.survey(), None) is None:
            raise UsageError(
                f"the reference {folder} has no survey; run it with one (edgeflare survey), with "
                "the same seeds and --seed as this campaign"
            )
        with decoding(folder, "its settings"):
            theirs = SurveyConfig.model_validate(store.campaign.get("survey") or {})
            seed = store.campaign.get("search", {}).get("seed", 0)
    ours = config.survey
    # inputs are drawn by the seed and the families: with others hardly any would be shared
    for what, their, our in (
        ("--seed", seed, config.search.seed),
        ("--family", theirs.families or "all", ours.families or "all"),
    ):
        if their != our:
            raise UsageError(
                f"the reference {folder} was surveyed with {what} {_plain(their)}, this campaign "
                f"has {_plain(our)}, so that their inputs differ; state the same"
            )
    return [
        words.SURVEYED_OTHERWISE.format(folder, what, their, our)
        for what, their, our in (
            ("--sure", theirs.sure, ours.sure),
            ("--survey-queries", theirs.queries, ours.queries),
        )
        if their != our
    ]


def _plain(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


class _Question(NamedTuple):
    """An input that references are asked about: of the survey, or a seed as it is (no `surveyed`)."""

    seed_id: str
    phase: ReferencePhase
    number: int
    sample: str
    original: Output
    surveyed: SurveyRecord | None = None

    @property
    def key(self) -> SurveyKey:
        return self.seed_id, self.phase, self.number

    def answer(self, name: str, output: Output, oracle: Oracle) -> ReferenceAnswer:
        return ReferenceAnswer(
            reference=name,
            seed_id=self.seed_id,
            number=self.number,
            deployed=output,
            decision=oracle.decide(self.original, output),
            total_variation=common_kind(self.original, output).total_variation(
                self.original, output
            ),
            phase=self.phase,
        )


_Questions: TypeAlias = Mapping[SurveyKey, _Question]


class ReferenceStage(CampaignStage):
    """Asks each reference about the seeds and the inputs of the survey, on the host."""

    name = "references"

    def check(self) -> None:
        """Check references that haven't answered yet, before a device is asked.

        Raises UsageError where a campaign has other seeds than this one, or a float model has
        changed or has another interface than the original; StoreError.
        """
        known = self._store.state.references
        path = self._config.original.path
        left_out = self._store.state.references_left_out
        answered = {*known, *left_out, *(one.of for one in known.values())}
        for reference in self._config.survey.references:
            model = float_model(reference, path)
            if model is None:
                if _name(reference) not in answered:
                    self._check_seeds(folder_at(reference, stated=False))
            elif model != path and str(model) not in answered:
                self._check_model(model)

    def _check_model(self, file: Path) -> None:
        if not file.is_file():
            raise UsageError(f"there is no model file {file}, of which references are made")
        known = self._store.state.float_models
        if known.get(str(file), digest := file_sha256(file)) != digest:
            raise UsageError(
                f"{file} has changed since int8 models of it were asked: undo the change, or start "
                "a new campaign"
            )
        try:
            self._open(file).close()
        except ModelError as error:
            raise UsageError(
                f"int8 models of {file} can't stand beside {self._config.original.path}: {error}; "
                "both need the same input and output"
            ) from error

    def _open(self, file: Path) -> OriginalModel:
        """Return an ONNX model with the original's interface. Raises ModelError."""
        original = self._run.sides[0]
        model = OriginalModel(file, "onnx", _OPTIONS, timeout_s=self._config.original_timeout_s)
        shapes = {output.name: output.shape for output in model.outputs}
        name = original.output.name if original.output.name in shapes else next(iter(shapes))
        try:
            if original.chosen is not None:
                model.fix_inputs(original.chosen.given)
            model.configure(original.spec, original.asked if original.outputs else name)
        except BaseException:
            model.close()
            raise
        if original.output.shape in (shapes[name], (1, *shapes[name])):  # as `with_batch` has it
            return model
        model.close()
        raise ModelError(
            f"its output has the shape {list(shapes[name])}, the original's "
            f"{list(original.output.shape)}"
        )

    def _check_seeds(self, folder: Path) -> None:
        with Store.open(folder) as store:
            theirs = {(seed.id, seed.sample) for seed in store.seeds(_replica(store))}
        own = self._store.seeds(next(iter(self._replicas)))
        ours = [(seed.id, seed.sample) for seed in own]
        shared = sum(one in theirs for one in ours)
        if shared < _LEAST_SHARED * len(ours):
            raise UsageError(
                f"the reference {folder} has {shared} of this campaign's {len(ours)} seeds; "
                "both need the same seeds, under the same names"
            )

    def do(self) -> None:
        """Store the references' answers that aren't stored yet.

        Int8 references have the original's interface. Raises ModelError where none can be made,
        StoreError.
        """
        surveyed, own = _surveyed(self._store), self._own()
        known = dict(self._store.state.references)
        for reference in self._config.survey.references if surveyed else ():
            model = float_model(reference, self._config.original.path)
            if model is not None:
                known |= self._answer_int8(model, {**surveyed, **own}, known)
            else:
                known |= self._copy(reference, surveyed, own, known)
            self._store.state.references = known

    def _own(self) -> _Questions:
        """Return the seeds as they are, that a replica answered."""
        return {
            (seed.id, OWN, 0): _Question(seed.id, OWN, 0, seed.sample, seed.outputs.original)
            for replica in self._replicas
            for seed in self._store.seeds(replica)
            if seed.outputs is not None and seed.outputs.original is not None
        }

    def _answer_int8(
        self,
        model: Path,
        questions: _Questions,
        known: Mapping[str, Reference],
    ) -> dict[str, Reference]:
        """Ask the int8 models of a float model; {} where they have been asked about all inputs."""
        of = "" if model == self._config.original.path else f" of {model.name}"
        making = words.MAKING_INT8.format(model.name)
        asked = [one.inputs for one in known.values() if one.of == str(model)]
        # some were asked about fewer where that was interrupted, or the survey has grown since
        if asked and min(one or 0 for one in asked) == len(questions):
            return {}

        def report(name: str, problem: str) -> None:
            self._reporter(Stage("references", f"{making}: {name}"))
            if problem:
                self._reporter.notice(words.NO_REFERENCE.format(name + of, problem))

        if of:
            self._check_model(model)
            models = self._store.state.float_models
            self._store.state.float_models = {**models, str(model): file_sha256(model)}
        self._reporter(Stage("references", making))
        samples = list(islice(self._store.seed_samples(), CALIBRATED_ON))
        inputs = calibration_inputs(samples, self._run.sides[0].spec)
        with translate_errors(self._store.folder):
            made = make_references(model, inputs, self._store.folder / REFERENCES, report)
        total = len(made) * len(questions)
        self._reporter(Stage("references", words.INT8_MODELS.format(len(made)), total))
        done = 0
        for name, file in made.items():
            stored = {answer.key for answer in self._store.reference_answers(name + of)}
            missing = [one for key, one in questions.items() if key not in stored]
            done += len(questions) - len(missing)
            self._reporter(Step(done))
            for part in self._answers(file, name + of, missing):
                self._store.add_reference_answers([one for one in part if one is not None])
                done += len(part)
                self._reporter(Step(done))
        return {
            name + of: Reference(
                INT8,
                path=f"{REFERENCES}/{file.name}",
                sha256=file_sha256(file),
                of=str(model),
                inputs=len(questions),
                dynamic=name in DYNAMIC,
            )
            for name, file in made.items()
        }

    def _answers(
        self,
        file: Path,
        name: str,
        questions: Sequence[_Question],
    ) -> Iterator[list[ReferenceAnswer | None]]:
        """Yield a model's answers, some at a time; None where it can't answer."""
        readers = self._run.readers
        if not questions or readers is None:
            return
        inputs = SurveyInputs.begin(self._store, self._config.survey.families)
        model = self._open(file)

        def sample(one: _Question) -> Sample:
            surveyed = one.surveyed
            return (
                self._store.get_sample(one.sample) if surveyed is None else inputs.sample(surveyed)
            )

        def ask(one: _Question) -> ReferenceAnswer | None:
            try:
                (output,) = model.scores([sample(one)])
            except InferenceFailedError:
                return None
            return one.answer(name, output, self._oracle)

        try:
            model.read_with(readers.original)
            for one in questions:  # what they share is read once, before threads ask for it
                if one.surveyed is not None:
                    _ = inputs.partners, inputs.seed(one.surveyed)
                    break
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as threads:
                for start in range(0, len(questions), _AT_ONCE):
                    yield list(threads.map(ask, questions[start : start + _AT_ONCE]))
        finally:
            model.close()

    def _copy(
        self,
        reference: str,
        surveyed: _Questions,
        own: _Questions,
        known: Mapping[str, Reference],
    ) -> dict[str, Reference]:
        """Store what another campaign's deployed model answered to the same inputs.

        {} where that was done for all inputs, or the campaign has too few of them.
        """
        name = _name(reference)
        left_out = self._store.state.references_left_out
        if left_out.get(name) == len(surveyed):
            return {}
        folder = folder_at(reference, stated=False)
        before = known.get(name)
        # Earlier versions didn't copy answers to seeds; where the reference is gone, none are.
        if (
            before is not None
            and before.inputs == len(surveyed)
            and (before.seeds == len(own) or not is_campaign(folder))
        ):
            return {}
        answered = {answer.key for answer in self._store.reference_answers(name)}
        shared = 0
        answers: list[ReferenceAnswer] = []
        with Store.open(folder) as store:
            for other in store.survey(_replica(store)):
                question = surveyed.get(other.key)
                if question is None or question.sample != other.sample or other.deployed is None:
                    continue
                shared += 1
                if question.key not in answered:
                    answers.append(question.answer(name, other.deployed, self._oracle))
            for seed in store.seeds(_replica(store)):
                question = own.get((seed.id, OWN, 0))
                output = None if seed.outputs is None else seed.outputs.deployed
                if question is None or question.sample != seed.sample or output is None:
                    continue
                if question.key not in answered:
                    answers.append(question.answer(name, output, self._oracle))
            deployed = store.models.get("deployed", {})
        few = words.SHARES.format(shared, counted(len(surveyed), "input"))
        if shared < _LEAST_SHARED * len(surveyed):
            self._store.state.references_left_out = {**left_out, name: len(surveyed)}
            self._reporter.notice(words.LEFT_OUT.format(reference, few))
            return {}
        if shared < len(surveyed):
            self._reporter.notice(words.RESTS_ON_SHARED.format(reference, few))
        if answers:
            self._store.add_reference_answers(answers)
        if deployed.get("sha256") == self._store.models.get("deployed", {}).get("sha256"):
            self._reporter.notice(words.SAME_DEPLOYED_MODEL.format(reference))
        return {
            name: Reference(
                "campaign",
                path=os.fspath(reference),
                sha256=deployed.get("sha256"),
                inputs=len(surveyed),
                seeds=len(own),
            )
        }


def _replica(store: Store) -> str:
    """Return the replica of a campaign whose answers stand for it: the first."""
    return replica_names(store)[0]


def _name(folder: str | Path) -> str:
    """Return the name of a reference that is a campaign or made of a file."""
    if is_address(folder):
        return split_address(os.fspath(folder))[1].rpartition("/")[2]
    return Path(folder).resolve().name


def _surveyed(store: Store) -> _Questions:
    """Return the survey's inputs; not the pursuit's: each campaign asks about its own.

    Of several replicas, which share the inputs, those of the last.
    """
    return {
        one.key: _Question(one.seed_id, one.phase, one.number, one.sample, one.original, one)
        for one in store.survey()
        if one.phase == "survey"
    }
