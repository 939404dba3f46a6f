"""A survey's answers as JSON lines, and pictures or sounds of its findings."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from edgeflare._internal.files import replacing
from edgeflare.analysis.findings import Commands, score_list
from edgeflare.answers.metrics import difference_text, text_of, top_label
from edgeflare.campaign.replay.inputs import survey_id
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.store import SeedRecord, Store, SurveyRecord
from edgeflare.store.samples import SampleReader
from edgeflare.types import Decision, Output, Sample

FILE_NAME = "survey.jsonl"
Answers: TypeAlias = tuple[Output | None, Output | None]
"""Both models' answers to a finding; None where one is not known."""
WriteFiles = Callable[[SeedRecord, str, Sample, Sample, Answers], Mapping[str, str]]
"""Writes the files of a finding, by seed, name, both samples and both answers; returns their paths
by kind."""


def export_survey(
    store: Store, reader: SampleReader, folder: Path, write: WriteFiles
) -> tuple[int, int]:
    """Write every answer of a survey as a line, with files of each confident deviation.

    Return how many confident deviations were written, and how many files. Nothing is written where
    there was no survey.
    """
    if not store.survey_counts().seeds:
        return 0, 0
    inputs, commands = SurveyInputs(store), Commands(store)
    seeds = {seed.id: seed for seed in store.seeds()}
    findings, files = 0, 1
    with replacing(folder / FILE_NAME) as lines:
        for one in store.survey():
            paths: Mapping[str, str] = {}
            if one.confident_deviation:
                name = f"{one.phase}-{one.number}" + (f"-{one.replica}" if one.replica else "")
                answers = (one.original, one.deployed)
                # the line is written in any case: its answers are known without the samples
                seed = reader.get(inputs.seed_digest(one))
                found = (
                    None if seed is None else reader.get(one.sample, partial(inputs.sample, one))
                )
                if seed is not None and found is not None:
                    paths = write(seeds[one.seed_id], name, seed, found, answers)
                findings += 1
            files += len(paths)
            row = {**survey_row(one, inputs, commands), "files": dict(paths)}
            lines.write(json.dumps(row, allow_nan=False).encode() + b"\n")
    return findings, files


def count_survey_findings(store: Store) -> int:
    """Return the number of confident deviations."""
    return sum(1 for _ in store.survey(deviating=True))


def survey_findings(store: Store) -> Iterator[dict[str, Any]]:
    """Yield every confident deviation as a JSON object, by phase, replica and seed."""
    if not store.survey_counts().seeds:
        return
    inputs, commands = SurveyInputs(store), Commands(store)
    for one in store.survey(deviating=True):
        yield survey_row(one, inputs, commands)


def survey_row(one: SurveyRecord, inputs: SurveyInputs, commands: Commands) -> dict[str, Any]:
    """Return an answer as a JSON object; labels are class indices, texts those of transcripts.

    `sample` and `seed_sample` are digests; the sample is stored in the campaign where it is a
    finding. `params` make it again, `words` say so for people. `command` sends a finding again.
    """
    again = one.confident_deviation and one.decision is Decision.DEVIATION
    return {
        "seed_id": one.seed_id,
        "replica": one.replica,
        "phase": one.phase,
        "number": one.number,
        "family": one.family,
        "severity": one.severity,
        "params": one.params,
        "words": inputs.words(one),
        "sample": one.sample,
        "seed_sample": inputs.seed_digest(one),
        "original_label": top_label(one.original),
        "deployed_label": top_label(one.deployed),
        "original_text": text_of(one.original),
        "deployed_text": text_of(one.deployed),
        "original_scores": score_list(one.original),
        "deployed_scores": score_list(one.deployed),
        "difference": difference_text(one.original, one.deployed),
        "original_margin": one.original_margin,
        "deployed_margin": one.deployed_margin,
        "total_variation": one.total_variation,
        "decision": one.decision.value,
        "confident_deviation": one.confident_deviation,
        "confirmed": one.confirmed,
        "device_name": one.device_name,
        "detail": one.detail,
        "command": commands.replay(survey_id(one), one.replica) if again else None,
    }
