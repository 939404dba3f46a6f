"""Healthy references: models that are asked about a survey's inputs in place of the deployed one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from edgeflare.campaign.events import Stage, Step
from edgeflare.campaign.fleet import CampaignStage
from edgeflare.campaign.model_pair import ModelInterface
from edgeflare.campaign.provenance import file_sha256
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.survey import INT8
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.campaign.survey.stage import distance
from edgeflare.errors import InferenceFailedError, UsageError
from edgeflare.models import OriginalModel, OutputReader
from edgeflare.models.quantized import (
    CALIBRATED_ON,
    calibration_inputs,
    check_quantizable,
    make_references,
)
from edgeflare.oracles import Oracle
from edgeflare.store import ReferenceAnswer, Store, SurveyRecord
from edgeflare.store.database import translate_errors
from edgeflare.store.survey import REFERENCES
from edgeflare.types import Output

_AT_ONCE = 64
_LEAST_SHARED = 0.5
_OPTIONS = {"graph_optimization": "basic"}
"""Integer kernels of some x86-64 CPUs saturate; so quantised values are computed with as floats."""


def check_references(config: CampaignConfig) -> None:
    """Raise UsageError where a reference can't be used; StoreError where it is no campaign."""
    names = [_name(one) for one in config.survey.references if one != INT8]
    if len({*names}) < len(names):
        raise UsageError(
            f"two references are folders of one name ({', '.join(names)}), by which reports tell "
            "them apart; rename or copy one"
        )
    for reference in config.survey.references:
        if reference == INT8:
            check_quantizable(config.original.path)
        else:
            _check_campaign(Path(reference), config)


def _check_campaign(folder: Path, config: CampaignConfig) -> None:
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


class ReferenceStage(CampaignStage):
    """Asks each reference about the inputs of the survey, on the host."""

    def answer(self, original: ModelInterface, reader: OutputReader) -> None:
        """Store the references' answers that aren't stored yet.

        `original` is the original's interface, which int8 references share, `reader` reads their
        outputs. Raises UsageError where a campaign has other inputs, ModelError where no int8 model
        can be made, StoreError.
        """
        records = _by_key(self._store)
        known = dict(self._store.fact(REFERENCES) or {})
        for reference in self._config.survey.references if records else ():
            if reference != INT8:
                if _name(reference) in known:
                    continue
                known |= self._copy(Path(reference), records)
            elif self._is_answered(known, records):
                continue
            else:
                known |= self._answer_int8(original, reader, records)
            self._store.set_fact(REFERENCES, known)

    def _is_answered(
        self,
        known: Mapping[str, Mapping[str, Any]],
        records: Mapping[tuple[str, str, int], SurveyRecord],
    ) -> bool:
        """Whether the int8 models are made, and have answered on every input."""
        names = [name for name, about in known.items() if about["kind"] == INT8]
        return bool(names) and all(
            records.keys() <= {one.key for one in self._store.reference_answers(name)}
            for name in names
        )

    def _answer_int8(
        self,
        original: ModelInterface,
        reader: OutputReader,
        records: Mapping[tuple[str, str, int], SurveyRecord],
    ) -> dict[str, Any]:
        path = self._config.original.path
        self._reporter(Stage("references", f"making int8 models of {path.name}"))
        samples = list(islice(self._store.seed_samples(), CALIBRATED_ON))
        folder = self._store.folder / REFERENCES
        with translate_errors(self._store.folder):
            made = make_references(path, calibration_inputs(samples, original.spec), folder)
        total = len(made) * len(records)
        self._reporter(Stage("references", f"{len(made)} int8 models on the host", total))
        done = 0
        for name, file in made.items():
            answered = {one.key for one in self._store.reference_answers(name)}
            missing = [record for key, record in records.items() if key not in answered]
            done += len(records) - len(missing)
            self._reporter(Step(done))
            for part in self._answers(file, name, missing, original, reader):
                self._store.add_reference_answers([one for one in part if one is not None])
                done += len(part)
                self._reporter(Step(done))
        return {
            name: {"kind": INT8, "path": f"{REFERENCES}/{file.name}", "sha256": file_sha256(file)}
            for name, file in made.items()
        }

    def _answers(
        self,
        file: Path,
        name: str,
        records: Sequence[SurveyRecord],
        original: ModelInterface,
        reader: OutputReader,
    ) -> Iterator[list[ReferenceAnswer | None]]:
        """Yield a model's answers, some at a time; None where it can't answer."""
        if not records:
            return
        inputs = SurveyInputs.begin(self._store, self._config.survey.families)
        model = OriginalModel(file, "onnx", _OPTIONS, timeout_s=self._config.original_timeout_s)

        def ask(record: SurveyRecord) -> ReferenceAnswer | None:
            try:
                (output,) = model.scores([inputs.sample(record)])
            except InferenceFailedError:
                return None
            return _answer(name, record, output, self._oracle)

        try:
            model.configure(original.spec, original.output.name)
            model.read_with(reader)
            _ = inputs.partners, inputs.seed(records[0])  # read once, before threads ask for them
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as threads:
                for start in range(0, len(records), _AT_ONCE):
                    yield list(threads.map(ask, records[start : start + _AT_ONCE]))
        finally:
            model.close()

    def _copy(
        self, folder: Path, records: Mapping[tuple[str, str, int], SurveyRecord]
    ) -> dict[str, Any]:
        """Store what another campaign's deployed model answered to the same inputs."""
        name = _name(folder)
        answered = {one.key for one in self._store.reference_answers(name)}
        shared = 0
        answers: list[ReferenceAnswer] = []
        with Store.open(folder) as store:
            for other in store.survey(next(iter(store.fact("replicas") or [""]))):
                own = records.get(other.key)
                if own is None or own.sample != other.sample or other.deployed is None:
                    continue
                shared += 1
                if own.key not in answered:
                    answers.append(_answer(name, own, other.deployed, self._oracle))
            deployed = store.models.get("deployed", {})
        if shared < _LEAST_SHARED * len(records):
            raise UsageError(
                f"the survey of the reference {folder} has {shared} of this campaign's "
                f"{len(records)} inputs; both need the same original, seeds, --seed and settings "
                "of the survey"
            )
        if answers:
            self._store.add_reference_answers(answers)
        if deployed.get("sha256") == self._store.models.get("deployed", {}).get("sha256"):
            self._reporter.notice(
                f"the reference {folder} has the same deployed model: the verdict tells whether "
                "this device answers as that one did, not whether the model is sound"
            )
        about = {"kind": "campaign", "path": str(folder), "sha256": deployed.get("sha256")}
        return {name: about}


def _name(folder: str | Path) -> str:
    """Return the name of a reference that is a campaign."""
    return Path(folder).resolve().name


def _by_key(store: Store) -> dict[tuple[str, str, int], SurveyRecord]:
    """Return the survey's answers by input, without the pursuit's, whose inputs are each campaign's.

    Of several replicas, which share the inputs, those of the last.
    """
    return {one.key: one for one in store.survey() if one.phase == "survey"}


def _answer(name: str, record: SurveyRecord, output: Output, oracle: Oracle) -> ReferenceAnswer:
    return ReferenceAnswer(
        reference=name,
        seed_id=record.seed_id,
        number=record.number,
        deployed=output,
        decision=oracle.decide(record.original, output),
        total_variation=distance(record.original, output),
        phase=record.phase,
    )
