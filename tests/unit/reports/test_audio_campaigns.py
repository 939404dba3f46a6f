"""What campaigns on audio come to: figures, files, tables and sentences, of keyword spotters and of recognisers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import soundfile
from page_stores import KEYWORDS, LINES, RATE, Found, audio_campaign, texts

from edgeflare import UsageError, export_campaign, rank_campaigns, report_text, summarize, to_frames
from edgeflare.analysis import add_to_corpus, corpus_summary, load_class_names
from edgeflare.cli.display.tables import print_summary
from edgeflare.reports import corpus_document, print_document
from edgeflare.store import Store
from edgeflare.types import Status

COUNT = 13
Searched = tuple[Path, Sequence[Found]]


@pytest.fixture(scope="module")
def keywords(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return audio_campaign(tmp_path_factory.mktemp("audio") / "keywords", "keywords")


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return audio_campaign(tmp_path_factory.mktemp("audio") / "speech", "speech")


def snr(one: Found) -> float | None:
    """Return the ratio in dB as a text book has it; None for a trigger of another length, or the seed."""
    if one.seed.shape != one.trigger.shape or one.status is Status.SEED_DEVIATES:
        return None
    seed, change = one.seed.astype(float), one.trigger.astype(float) - one.seed
    return 10 * float(np.log10((seed**2).mean() / (change**2).mean()))


def test_a_summary_has_the_median_ratio_and_the_words_in_place_of_labels(
    speech: Searched,
) -> None:
    summary = summarize(speech[0])
    ratios = [ratio for one in speech[1] if (ratio := snr(one)) is not None]
    assert summary.snr_db == pytest.approx(np.median(ratios), rel=1e-4)
    assert summary.sample_rate == RATE
    assert summary.label_pairs == ()
    first = summary.word_pairs[0]
    lines = [LINES[number % len(LINES)][0] for number in range(len(speech[1]))]
    expected = sum(line in (LINES[0][0], LINES[2][0]) for line in lines)
    assert {speech[1][number].status for number in (0, 8)} == {Status.FOUND, Status.SEED_DEVIATES}
    assert (first.original, first.deployed, first.count) == ("no", "go", expected)
    assert summary.triggers[0].original_text == texts("speech", 0)[0]
    json.dumps(summary.to_json())


def test_keywords_are_classes_as_those_of_images_are(keywords: Searched) -> None:
    summary = summarize(keywords[0])
    assert summary.word_pairs == ()
    assert {(one.original, one.deployed) for one in summary.label_pairs} == {
        (0, 1), (1, 3), (2, 3), (3, 1),
    }  # fmt: skip
    assert summary.snr_db is not None
    names = keywords[0] / "names.txt"
    names.write_text("\n".join(KEYWORDS))
    assert load_class_names(names, keywords[0]) == KEYWORDS
    assert "yes | no" in report_text(keywords[0], "markdown", class_names=KEYWORDS)


@pytest.mark.parametrize("kind", ["keywords", "speech"])
def test_an_export_has_sounds_that_can_be_heard_and_a_panel(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder, found = request.getfixturevalue(kind)
    report = export_campaign(folder, tmp_path / "export")
    lines = (tmp_path / "export" / "triggers.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    files = [path for path in (tmp_path / "export").rglob("*") if path.is_file()]
    assert report.files == len(files) == 3 * COUNT + 2
    for one, row in zip(found, rows, strict=True):
        assert set(row["files"]) == {"seed", "trigger", "panel"}
        for name, sample in (("seed", one.seed), ("trigger", one.trigger)):
            path = tmp_path / "export" / row["files"][name]
            assert path.parent.name == "audio"
            assert path.name.endswith(f"-{name}.wav")
            heard, rate = soundfile.read(path, dtype="float32")
            assert rate == RATE
            np.testing.assert_allclose(heard, sample, atol=1.01 / 32768)
        assert cv2.imread(str(tmp_path / "export" / row["files"]["panel"])) is not None
        assert row["amplification"] is None
        ratio = snr(one)
        assert row["snr_db"] == (ratio if ratio is None else pytest.approx(ratio, rel=1e-4))
    if kind == "speech":
        original, deployed = texts("speech", 0)
        assert (rows[0]["original_text"], rows[0]["deployed_text"]) == (original, deployed)
        assert "".join(rows[0]["original_pieces"]) == original
        assert len(rows[0]["original_scores"]) == len(rows[0]["original_pieces"])
        assert rows[0]["seed_deployed_text"] == original


def test_of_long_texts_a_terminal_shows_where_they_begin_to_differ(
    speech: Searched,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = " ".join(f"word{number}" for number in range(60))
    long = (f"{same} and then no end", f"{same} and then go end")
    summary = summarize(speech[0])
    first = replace(
        summary.triggers[0], words=("louder",), original_text=long[0], deployed_text=long[1]
    )
    monkeypatch.setenv("COLUMNS", "120")
    print_summary(replace(summary, triggers=(first,), found=1), as_json=False)
    printed = capsys.readouterr().out
    assert 'then no end"' in printed
    assert 'then go end"' in printed
    assert "word10" not in printed


def test_frames_have_texts_and_ratios(speech: Searched) -> None:
    pytest.importorskip("pandas")
    frames = to_frames(speech[0])
    assert frames.triggers["original_text"].tolist() == [
        texts("speech", number)[0] for number in range(COUNT)
    ]
    assert frames.triggers["original_label"].isna().all()
    assert frames.triggers["snr_db"].isna().tolist() == [snr(one) is None for one in speech[1]]
    scores = frames.triggers["original_scores"].iloc[0]
    assert scores.shape == (4, 2)
    assert frames.seeds["deployed_text"].iloc[0] == texts("speech", 0)[0]
    assert set(frames.outcomes["deployed_text"]) >= {"", texts("speech", 0)[1]}


def test_a_corpus_takes_keywords_and_is_not_started_for_transcripts(
    keywords: Searched,
    speech: Searched,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(UsageError, match="decisions between"):
        add_to_corpus(tmp_path / "corpus", speech[0])
    assert not (tmp_path / "corpus").exists()
    assert add_to_corpus(tmp_path / "corpus", keywords[0]).entries == COUNT
    print_document(corpus_document(corpus_summary(tmp_path / "corpus")))
    assert "16000 Hz, 4" in capsys.readouterr().out


def test_recognisers_are_ranked_by_their_words(tmp_path: Path) -> None:
    folders = [audio_campaign(tmp_path / name, "speech", 3)[0] for name in ("one", "two")]
    for folder in folders:
        with Store.open(folder) as store:
            models: Any = store.models
            about = {"path": "a.onnx", "bytes": 1}
            store.set_models(models["original"] | about, models["deployed"] | about)
    ranking = rank_campaigns(folders, measure="disagreement", names=["one", "two"])
    one = ranking.candidates[0]
    shares = (1 / 4, 2 / 8, 2 / 5, 2 / 5)
    assert one.value.value == pytest.approx(np.mean(shares))
    assert "models differ" in ranking.differences[0]
    assert ranking.original is None
