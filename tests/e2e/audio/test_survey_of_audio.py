"""A survey of audio: of speech recognisers, whose transcripts are compared by their words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from speech_models import LETTERS, RATE, ctc_model, spelt

from edgeflare import config_from, export_campaign, run_campaign, summarize, write_html_report
from edgeflare.store import Store
from edgeflare.types import Transcript

pytestmark = pytest.mark.extended

TEXTS = ("ab|ca", "b|ac|b", "ca|ba", "ab|ab")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey of two recognisers that take some loudness for two letters."""
    folder = tmp_path_factory.mktemp("recognisers")
    ctc_model(folder / "original.onnx")
    ctc_model(folder / "deployed.onnx", shift=0.04)
    (folder / "seeds").mkdir()
    rng = np.random.default_rng(5)
    for number, text in enumerate(TEXTS):
        noisy = spelt(text, LETTERS) + rng.uniform(0, 0.04, 100 * len(text)).astype(np.float32)
        soundfile.write(folder / "seeds" / f"{number}.wav", noisy, RATE, subtype="FLOAT")
    values: dict[str, Any] = {
        "original": {"path": folder / "original.onnx"},
        "deployed": {"path": folder / "deployed.onnx"},
        "seeds": {"path": folder / "seeds"},
        "search": {"strategy": "none"},
        "survey": {"queries": 6},
        "out": folder / "campaign",
    }
    return run_campaign(config_from(values, "test"))


def test_the_word_difference_stands_in_for_total_variation(campaign: Path) -> None:
    survey = summarize(campaign).survey
    assert survey.mean_total_variation is None
    assert survey.mean_word_difference is not None
    assert 0 < survey.mean_word_difference < 1
    with Store.open(campaign) as store:
        records = list(store.survey(phase="survey"))
    assert len(records) == survey.overall.inputs > 12
    for one in records:
        assert isinstance(one.original, Transcript)
        assert one.total_variation is None
        assert one.confident_deviation <= bool(one.disagreement)
    assert survey.overall.deviations == sum(one.confident_deviation for one in records) > 0


def test_the_page_and_the_export_have_the_findings(campaign: Path, tmp_path: Path) -> None:
    report = write_html_report(campaign, tmp_path / "report.html")
    assert report.bytes
    page = (tmp_path / "report.html").read_text()
    assert "words that differ" in page
    exported = export_campaign(campaign, tmp_path / "files")
    rows = [
        json.loads(line) for line in (tmp_path / "files" / "survey.jsonl").read_text().splitlines()
    ]
    findings = [row for row in rows if row["confident_deviation"]]
    assert len(findings) == exported.survey_findings > 0
    for row in findings:
        assert row["original_text"] != row["deployed_text"]
        assert (tmp_path / "files" / row["files"]["trigger"]).suffix == ".wav"
