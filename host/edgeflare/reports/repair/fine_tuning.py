"""A campaign's seed inputs and triggering inputs as a set to fine-tune a model with."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from edgeflare._internal.files import is_unused, replacing, write_whole
from edgeflare._internal.flags import Flag
from edgeflare._internal.records import JsonRecord
from edgeflare.analysis.base import Analysis, RunContext
from edgeflare.answers.metrics import text_of, top_label
from edgeflare.document import Section, Text
from edgeflare.errors import StoreError, UsageError
from edgeflare.repair import check_finished
from edgeflare.reports.export import file_stem, text_in, translate_write_errors
from edgeflare.reports.media import pcm_wav, png
from edgeflare.store import SeedRecord, Store
from edgeflare.types import TRIGGERS, Output

_COLUMNS = ("file", "kind", "seed", "wanted", "deployed", "true")
_FILES = "files"


@dataclass(frozen=True)
class FineTuningSet(JsonRecord):
    """What was written to `folder`: so many inputs, on some of which the models deviate (`triggering`)."""

    folder: str
    inputs: int
    triggering: int


def write_fine_tuning(campaign: Path, folder: Path) -> FineTuningSet:
    """Write each seed input and triggering input as a PNG or WAV file, and ``examples.csv``.

    A line there has the file, its `kind` (seed or trigger), the id of the seed input that it was
    made from, the original's class or text (`wanted`: what the model should learn), the deployed
    model's, and the seed input's true class where it is known. Inputs from one seed input belong
    into one part, where the set is divided. Raises UsageError where the campaign isn't finished, and
    for detectors and models of values; StoreError where the folder isn't empty, or can't be written.
    """
    check_finished(campaign)
    with (
        Store.open(campaign) as store,
        translate_write_errors(
            folder,
            untouched="the campaign itself",
            again="write the set again",
            instead="choose another folder",
        ),
    ):
        if not store.kind.shows_pairs:
            raise UsageError(
                f"{campaign}: the models answer with {store.kind.noun}, and examples.csv has one class or text "
                "for an input; write the inputs with `edgeflare export`"
            )
        if folder.exists() and not is_unused(folder, ()):
            raise StoreError(f"{folder} exists and isn't empty; choose another folder")
        (folder / _FILES).mkdir(parents=True, exist_ok=True)
        count = triggering = 0
        with replacing(folder / "examples.csv") as file, text_in(file, newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(_COLUMNS)
            for stem, sample, row in _rows(store):
                if row[2] is None:  # the original has no answer to learn
                    continue
                rate, pixels = store.sample_rate, store.get_sample(sample)
                data = png(pixels) if rate is None else pcm_wav(pixels, rate)
                name = f"{_FILES}/{stem}.{'png' if rate is None else 'wav'}"
                write_whole(folder / name, data)
                writer.writerow([name, *row])
                count += 1
                triggering += row[2] != row[3]
    return FineTuningSet(str(folder), count, triggering)


def _rows(store: Store) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield the beginning of each input's file name, its sample's digest, and its line."""
    seeds = {seed.id: seed for seed in store.seeds()}
    for seed in seeds.values():
        if seed.outputs is not None:
            original, deployed, _ = seed.outputs
            yield f"{file_stem(seed)}-seed", seed.sample, _row("seed", seed, original, deployed)
    for one in store.outcomes():
        seed = seeds[one.seed_id]
        if one.status in TRIGGERS and one.trigger not in (None, seed.sample):
            row = _row("trigger", seed, one.original, one.deployed)
            yield f"{file_stem(seed, one.replica)}-trigger", str(one.trigger), row


def _row(
    kind: str, seed: SeedRecord, original: Output | None, deployed: Output | None
) -> list[Any]:
    wanted, told = (_answer(one) for one in (original, deployed))
    return [kind, seed.id, wanted, told, "" if seed.label is None else seed.label]


def _answer(output: Output | None) -> str | int | None:
    text = text_of(output)
    return top_label(output) if text is None else text


class ExamplesSettings(BaseModel):
    """What ``repair examples`` is told."""

    folder: Annotated[Path, Flag("folder")] = Field(description="A new folder.")


class _Examples(Analysis[ExamplesSettings, FineTuningSet]):
    name = "examples"
    about = (
        "Write seed and triggering inputs with the original's answers, to fine-tune a model with."
    )
    settings, result = ExamplesSettings, FineTuningSet
    stored = False

    def run(
        self, campaign: Store, settings: ExamplesSettings, context: RunContext
    ) -> FineTuningSet:
        del context
        return write_fine_tuning(campaign.folder, settings.folder)

    def sections(self, result: FineTuningSet) -> Iterator[Section]:  # type: ignore[override]
        text = (
            f"{result.inputs:,} inputs, of which {result.triggering:,} are triggering, in {result.folder}: "
            "examples.csv names each file and what the original answers to it"
        )
        yield Section("examples", "", (Text(text),))


EXAMPLES = _Examples()
