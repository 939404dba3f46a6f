"""A campaign's findings as files that any program can read: PNG, WAV and JSON lines."""

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeAlias

from edgeflare._internal.files import is_disk_full, read_regular, replacing, write_whole
from edgeflare._internal.records import JsonRecord
from edgeflare.analysis.findings import (
    count_findings,
    has_input,
    jsonable,
    outcome_part,
    outcomes_of_replica,
    score_list,
    seed_part,
)
from edgeflare.analysis.summary import summarize
from edgeflare.answers.metrics import difference_text, text_of
from edgeflare.campaign.status import replica_names
from edgeflare.errors import DiskFullError, StoreError, UsageError
from edgeflare.reports.survey.export import Answers, WriteFiles, export_survey
from edgeflare.reports.telemetry import write_minutes, write_openmetrics
from edgeflare.store import OutcomeRecord, SeedRecord, Store, open_store
from edgeflare.store.documents import read_json
from edgeflare.store.location import DATABASE_NAME, POINTER_NAME
from edgeflare.store.samples import SampleReader
from edgeflare.types import Sample


def check_report_path(path: Path, campaign: Path) -> None:
    """Raise UsageError if a report's file is a folder, or the campaign's database."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the file to write")
    if path.resolve() in [(campaign / name).resolve() for name in (DATABASE_NAME, POINTER_NAME)]:
        raise UsageError(f"{path} is the campaign itself; name another file")


@contextmanager
def translate_write_errors(
    folder: Path, *, untouched: str, again: str, instead: str
) -> Iterator[None]:
    """Turn errors of the file system into DiskFullError or StoreError.

    `untouched` is what a full disk leaves as it was, `again` what to do once there is space,
    `instead` what to do where a file can't be written for another reason.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(
                f"no space is left on the disk of {folder}",
                kept=f"{untouched} is untouched",
                advice=f"free some space and {again}",
            ) from error
        where = error.filename2 or error.filename or folder
        raise StoreError(f"{where} can't be written: {error.strerror}; {instead}") from error


@contextmanager
def translate_report_errors(path: Path) -> Iterator[None]:
    """Make the folder of a report's file, and turn errors as `translate_write_errors` does."""
    with translate_write_errors(
        path.parent,
        untouched="the campaign itself",
        again="write the report again",
        instead="choose another file",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        yield


@dataclass(frozen=True)
class ExportReport(JsonRecord):
    """What an export wrote: findings by status, and files.

    `survey_findings` are the confident deviations of the survey, which are not among the findings.
    `notices` say which findings have no files.
    """

    folder: str
    findings: int
    by_status: dict[str, int]
    files: int
    survey_findings: int = 0
    notices: tuple[str, ...] = ()


def export_campaign(
    campaign: Store | Path,
    folder: Path,
    *,
    most_pictures: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Write every finding of a campaign into a folder.

    `campaign.json` says what was run; `triggers.jsonl` has one line a finding, in the order of the
    seeds, device by device where each searched for itself; `images/` has for each a PNG of seed and
    triggering input, pixel by pixel, their amplified difference, and a panel of the three; of
    detectors the panel has both models' boxes (see `answers_panel`). Of audio `audio/` has seed and triggering input as WAV files of 16-bit PCM, which every player takes (the
    campaign's own samples are floats, in its folder), and a panel with the spectrograms of both and
    their difference. `survey.jsonl` has a line for each input of the survey, with the same files of
    each confident deviation. Numbers that JSON lacks are the texts "nan", "inf", "-inf". Where any device
    was watched, `telemetry.csv` has a line for each minute of each device, and
    `telemetry.openmetrics.txt` the same figures as metrics with timestamps.

    The folder must not exist, be empty, or come from an earlier export of the same campaign, which
    is brought up to date. Only the first `most_pictures` findings get pictures or sounds, None: all
    do. `progress` is called with the findings written and their number.

    Raises StoreError where a folder can't be used, DiskFullError where no space is left.
    """
    with (
        open_store(campaign) as store,
        translate_write_errors(
            folder,
            untouched="the campaign itself",
            again="export again",
            instead="choose another folder",
        ),
    ):
        _make_ready(folder, store)
        _write_json(folder / "campaign.json", _describe(store))
        reader = SampleReader(store.sample_to_show)
        statuses, files = _export_all(store, reader, folder, most_pictures, progress)
        deviations, written = export_survey(store, reader, folder, _survey_writer(store, folder))
        files += written + _export_minutes(store, folder)
    return ExportReport(
        str(folder), statuses.total(), dict(statuses), files, deviations, reader.notices
    )


def _survey_writer(store: Store, folder: Path) -> WriteFiles:
    def write(
        seed: SeedRecord, name: str, original: Sample, found: Sample, answers: Answers
    ) -> Mapping[str, str]:
        stem = file_stem(seed, name)
        return _write_files(folder, stem, original, found, answers, store.sample_rate)[0]

    return write


def _export_all(
    store: Store,
    reader: SampleReader,
    folder: Path,
    most_pictures: int | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[Counter[str], int]:
    """Write pictures and lines, seed by seed.

    Return the number of findings of each status, and how many files there are in all.
    """
    total = count_findings(store)
    statuses: Counter[str] = Counter()
    files = 2
    with replacing(folder / "triggers.jsonl") as lines:
        for replica in sorted(replica_names(store)):
            for seed, outcome in outcomes_of_replica(store, replica):
                if not has_input(outcome):
                    continue
                with_files = most_pictures is None or statuses.total() < most_pictures
                row = _export_one(store, reader if with_files else None, folder, seed, outcome)
                lines.write(json.dumps(row, allow_nan=False).encode() + b"\n")
                files += len(row["files"])
                statuses[outcome.status.value] += 1
                if progress is not None:
                    progress(statuses.total(), total)
    return statuses, files


def _export_one(
    store: Store,
    reader: SampleReader | None,
    folder: Path,
    seed: SeedRecord,
    outcome: OutcomeRecord,
) -> dict[str, Any]:
    files: dict[str, str] = {}
    amplification = None
    pair = None
    if reader is not None:
        pair = reader.pair(seed.sample, outcome.trigger or seed.sample)
    if pair is not None:
        stem = file_stem(seed, outcome.replica)
        answers = (outcome.original, outcome.deployed)
        files, amplification = _write_files(folder, stem, *pair, answers, store.sample_rate)
    return _exported_row(outcome_part(store.models, outcome), seed, files, amplification)


def _write_files(
    folder: Path, stem: str, seed: Sample, trigger: Sample, answers: Answers, rate: int | None
) -> tuple[dict[str, str], float | None]:
    """Write the files of a finding; return their paths by kind, and the amplification.

    `answers` are both models' to the trigger.
    """
    made: _Files
    amplification: float | None
    if rate is None:
        made, amplification = _image_files(seed, trigger, answers)
    else:
        made, amplification = _audio_files(seed, trigger, rate)
    files = {}
    for kind, ending, data in made:
        files[kind] = f"{_folder_name(rate)}/{stem}-{kind}.{ending}"
        write_whole(folder / files[kind], data)
    return files, amplification


_STEM_LENGTH = 60


_Files: TypeAlias = Sequence[tuple[str, str, bytes]]
"""The files of a finding: kind, ending and content of each."""


def _image_files(seed: Sample, trigger: Sample, answers: Answers) -> tuple[_Files, float]:
    from edgeflare.reports.media import answers_panel, difference, panel, png

    change, amplification = difference(seed, trigger)
    drawn = answers_panel(seed, trigger, answers, None)
    files = [
        ("seed", "png", png(seed)),
        ("trigger", "png", png(trigger)),
        ("difference", "png", png(change)),
        ("panel", "png", drawn or png(panel(seed, trigger, change))),
    ]
    return files, amplification


def _audio_files(seed: Sample, trigger: Sample, rate: int) -> tuple[_Files, None]:
    from edgeflare.reports.media import pcm_wav, png, spectrogram_panel

    files = [
        (kind, "wav", pcm_wav(one, rate)) for kind, one in (("seed", seed), ("trigger", trigger))
    ]
    return [*files, ("panel", "png", png(spectrogram_panel(seed, trigger, rate)))], None


def _exported_row(
    outcome: Mapping[str, Any],
    seed: SeedRecord,
    files: Mapping[str, str],
    amplification: float | None,
) -> dict[str, Any]:
    """Return a line of ``triggers.jsonl``: the `outcome_part`, the `seed_part` and its answers.

    `amplification` is the factor of the difference picture, None of audio, which has none.
    """
    original, deployed, _ = seed.outputs or (None, None, None)
    row = {
        **outcome,
        **seed_part(seed, outcome),
        "seed_original_text": text_of(original),
        "seed_deployed_text": text_of(deployed),
        "seed_original_scores": score_list(original),
        "seed_deployed_scores": score_list(deployed),
        "seed_difference": difference_text(original, deployed),
        "files": dict(files),
        "amplification": amplification,
    }
    plain: dict[str, Any] = jsonable(row)
    return plain


def file_stem(seed: SeedRecord, replica: str = "") -> str:
    """Return the beginning of a finding's file names: unique, and plain on every file system.

    It ends in the device's name where each device searched for itself.
    """
    stem = f"{seed.position:05d}-{_plain_name(re.sub(r'[.][A-Za-z]+$', '', seed.id))}"
    if not replica:
        return stem
    plain = _plain_name(replica)
    if plain != replica:  # two devices may have the same plain name
        plain += f"-{hashlib.sha256(replica.encode()).hexdigest()[:6]}"
    return f"{stem}-{plain}"


def _plain_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[-_STEM_LENGTH:]


def _folder_name(rate: int | None) -> str:
    return "images" if rate is None else "audio"


def _export_minutes(store: Store, folder: Path) -> int:
    """Write the devices' minutes, where there are any; return how many files that makes."""
    if next(store.telemetry(), None) is None:
        return 0
    with replacing(folder / "telemetry.csv") as file, text_in(file, newline="") as text:
        write_minutes(text, store.telemetry())
    with replacing(folder / "telemetry.openmetrics.txt") as file, text_in(file) as text:
        write_openmetrics(text, store.telemetry)
    return 2


@contextmanager
def text_in(file: BinaryIO, newline: str = "\n") -> Iterator[TextIO]:
    """Yield a text file in UTF-8 around a binary one, which stays open."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline=newline)
    yield text
    text.detach()


def _describe(store: Store) -> dict[str, Any]:
    return {
        "campaign": store.id,
        "created_at": store.created_at.isoformat(),
        "config": store.campaign,
        "models": store.models,
        "devices": {device.digest: asdict(device) for device in store.devices()},
        "environments": store.environments(),
        "skipped": [asdict(entry) for entry in store.skipped()],
        "notices": store.notices(),
        "summary": summarize(store).to_json(),
    }


def _make_ready(folder: Path, store: Store) -> None:
    if folder.exists() and not _may_be_used(folder, store):
        raise StoreError(
            f"{folder} exists and is no earlier export of this campaign; choose another folder"
        )
    (folder / _folder_name(store.sample_rate)).mkdir(parents=True, exist_ok=True)


def _may_be_used(folder: Path, store: Store) -> bool:
    if not folder.is_dir():
        return False
    try:
        earlier = read_json(read_regular(folder / "campaign.json", inside=folder))
    except FileNotFoundError:
        return not any(folder.iterdir())
    except ValueError:
        return False
    return isinstance(earlier, dict) and earlier.get("campaign") == store.id


def _write_json(path: Path, value: dict[str, Any]) -> None:
    write_whole(path, json.dumps(jsonable(value), indent=2, allow_nan=False).encode())
