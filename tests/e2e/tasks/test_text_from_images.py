"""Campaigns over models that read text from images: search, survey, replay, shrinking, the page, and refusals."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import must_run
from text_models import (
    READER_INPUT,
    Readers,
    ppocr_readers,  # noqa: F401
    text_reader,
    write_images,
    write_lines,
    written,
)

from edgeflare import CampaignConfig, config_from, run_campaign
from edgeflare.analysis import add_to_corpus
from edgeflare.answers.metrics import is_same
from edgeflare.answers.transcripts import spoken
from edgeflare.errors import UsageError
from edgeflare.reports import write_html_report
from edgeflare.store import Store
from edgeflare.types import TRIGGERS, Status, Transcript

pytestmark = pytest.mark.extended

TEXTS = ("ab ca", "cab dab", "d a b c", "bad cab", "dab", "ca db")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two readers of five symbols, and images of six texts."""
    folder = tmp_path_factory.mktemp("readers")
    text_reader(folder / "original.onnx")
    text_reader(folder / "deployed.onnx", drift=0.05)
    images = [written(text, 8, number) for number, text in enumerate(TEXTS)]
    write_images(folder / "seeds", images)
    return folder


def config(pair: Path, search: dict[str, Any] | None = None, **more: Any) -> CampaignConfig:
    values = {
        "original": {"path": pair / "original.onnx", "input": READER_INPUT},
        "deployed": {"path": pair / "deployed.onnx", "input": READER_INPUT},
        "seeds": {"path": pair / "seeds"},
        "search": {"timeout_s": 0, **(search or {})},
        "survey": {"enabled": False},
        **more,
    }
    return config_from(values, "test")


@pytest.fixture(scope="module")
def campaign(pair: Path) -> Path:
    """The folder of a campaign with the boundary search, a survey and a control."""
    survey = {"enabled": True}
    return run_campaign(config(pair, survey=survey, control=True, out=pair / "found"))


def test_the_symbols_in_the_files_are_read_and_said(campaign: Path) -> None:
    with Store.open(campaign) as store:
        read = {seed.id: seed.outputs.original for seed in store.seeds() if seed.outputs}
        assert [one.text.strip() for one in read.values() if isinstance(one, Transcript)] == [
            *TEXTS
        ]
        (said,) = [text for text in store.notices() if "metadata 'character'" in text]
    assert "--decoder vocabulary=FILE" in said


@pytest.mark.parametrize(
    "strategy", ["boundary", "dflare", pytest.param("diffchaser", marks=pytest.mark.slow)]
)
def test_a_search_finds_images_that_both_models_read_differently(pair, campaign, strategy) -> None:
    folder = campaign
    if strategy != "boundary":
        settings = {"strategy": strategy, "max_queries": 400}
        folder = run_campaign(config(pair, settings, out=pair / strategy))
    found = 0
    with Store.open(folder) as store:
        for outcome in store.outcomes():
            if outcome.status is Status.FOUND:
                assert spoken(outcome.original.text) != spoken(outcome.deployed.text)
                assert outcome.confirmed == 2
                assert outcome.trigger is not None
                assert store.get_sample(outcome.trigger).dtype == np.uint8
                found += 1
        assert store.sample_rate is None
    assert found >= len(TEXTS) - 1


def test_the_page_has_pictures_with_both_texts(campaign: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_html_report(campaign, page)
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    data = json.loads(found[1])
    assert data["wide"]
    assert data["rate"] is None
    findings = data["findings"]
    for transcripts, shown in zip(
        findings["transcripts"], findings["trigger_picture"], strict=True
    ):
        original, deployed = (
            "".join(part for part, _ in transcripts[which]) for which in ("original", "deployed")
        )
        assert spoken(original) != spoken(deployed)
        assert any(differs for _, differs in transcripts["original"])
        assert data["pictures"][shown].startswith("data:image/png")
    assert "model returns differently" in text
    assert "hears" not in text


def test_a_corpus_takes_no_texts(campaign: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="transcripts"):
        add_to_corpus(tmp_path / "corpus", campaign)


def test_the_deployed_file_may_lack_the_symbols_of_the_original(pair, campaign, tmp_path) -> None:
    bare = text_reader(tmp_path / "bare.onnx", drift=0.05, symbols=None)
    values = {"deployed": {"path": bare, "input": READER_INPUT}, "out": tmp_path / "out"}
    folder = run_campaign(config(pair, {"strategy": "none"}, **values))
    with Store.open(folder) as store, Store.open(campaign) as other:
        answers = [
            [seed.outputs.deployed for seed in one.seeds() if seed.outputs]
            for one in (store, other)
        ]
    assert len(answers[0]) == len(TEXTS)
    for mine, theirs in zip(*answers, strict=True):
        assert mine is not None
        assert theirs is not None
        assert is_same(mine, theirs)


def test_where_the_original_lacks_its_symbols_the_vocabulary_is_asked_for(pair, tmp_path) -> None:
    bare = text_reader(tmp_path / "bare.onnx", symbols=None)
    values: dict[str, Any] = {
        "original": {"path": bare, "input": READER_INPUT},
        "out": tmp_path / "out",
    }
    with pytest.raises(UsageError, match="--decoder kind=ctc"):
        run_campaign(config(pair, **values))
    words = tmp_path / "words.txt"
    words.write_text("\n".join(("<blank>", *"abcd", " ")) + "\n", encoding="utf-8")
    values["original"]["decoder"] = {"kind": "ctc", "vocabulary": str(words)}
    folder = run_campaign(config(pair, {"strategy": "none"}, **values))
    with Store.open(folder) as store:
        assert [seed.outputs is not None for seed in store.seeds()] == [True] * len(TEXTS)


def test_ppocr_reads_lines_and_its_int8_file_is_found_to_differ(
    tmp_path: Path,
    ppocr_readers: Readers,  # noqa: F811
) -> None:
    write_lines(tmp_path / "lines", 6)
    must_run(
        *("run", "--original", ppocr_readers.original, "--deployed", ppocr_readers.deployed),
        *("--seeds", "lines", "--out", "campaign", "--no-survey"),
        *("--input", "mean=127.5", "--input", "std=127.5", "--input", "color=BGR"),
        *("--input", "size=48,320"),
        home=tmp_path,
    )
    with Store.open(tmp_path / "campaign") as store:
        right = 0
        for seed in store.seeds():
            expected = seed.id[4:].removesuffix(".png").split("-")
            right += " ".join(spoken(seed.outputs.original.text)) == " ".join(
                word for part in expected for word in spoken(part)
            )
        outcomes = list(store.outcomes())
    assert right >= 4
    assert sum(one.status in TRIGGERS for one in outcomes) >= 5
    assert sum(one.search_queries for one in outcomes) <= 5 * len(outcomes)
