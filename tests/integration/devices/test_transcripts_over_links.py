"""Speech recognisers on real agents, local and over SSH: the same text and scores as in this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from speech_models import CTC, LETTERS, WAVEFORM, ctc_model, spelt, token_model
from ssh_servers import SshServer

from edgeflare.devices import Device, DeviceSession, open_device
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import OriginalModel, OutputReader
from edgeflare_agent.decoding import Decoded

OWN = {"vocabulary": None}
CLIPS = [spelt("ab|_ca_a"), spelt("_"), spelt("cc|b") * 0.93]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeviceSession]:
    """One device for many tests, each of which configures it."""
    folder = tmp_path_factory.mktemp("recogniser")
    device = Device(name="bench", transport="local", cache=str(folder / "cache"))
    session = open_device(device, ctc_model(folder / "m.onnx"))
    yield session
    session.close()


def heard(session: DeviceSession, clips: list[Any]) -> list[Any]:
    return list(session.submit(clips).result(60).outputs)


def check_like_original(session: DeviceSession, path: Path) -> None:
    """Text and scores are those of the same file in this process, to the last bit."""
    original = OriginalModel(path, "onnx", {})
    original.configure(WAVEFORM, None, OWN)
    assert session.model.decoder == original.decoder
    session.configure(WAVEFORM, None, OWN)
    reader = OutputReader(session.model.outputs[0], "transcript")
    original.read_with(reader)
    for here, there in zip(
        original.scores(CLIPS), map(reader.read, heard(session, CLIPS)), strict=True
    ):
        assert here.pieces == there.pieces  # type: ignore[union-attr]
        np.testing.assert_array_equal(here.scores, there.scores)  # type: ignore[union-attr]
    original.close()


def test_a_local_device_hears_what_the_host_hears(session: DeviceSession, tmp_path: Path) -> None:
    check_like_original(session, ctc_model(tmp_path / "m.onnx"))


def test_a_device_over_ssh_hears_what_the_host_hears(ssh_server: SshServer, tmp_path: Path) -> None:
    path = token_model(tmp_path / "m.onnx")
    session = open_device(ssh_server.device(name="bench", cache=str(tmp_path / "cache")), path)
    check_like_original(session, path)
    session.close()


def test_the_vocabulary_of_a_file_stays_on_the_device(session: DeviceSession) -> None:
    assert session.model.decoder["tokens"] == len(LETTERS)
    assert list(session.model.metadata) == ["edgeflare.input"]


def test_a_stated_decoder_and_raw_outputs_in_turn(session: DeviceSession) -> None:
    session.configure(WAVEFORM, "logits", {**CTC, "vocabulary": list("_xyz-")})
    before = session.submit([spelt("ab|c")])
    session.configure(WAVEFORM, "logits")
    (raw,) = heard(session, [spelt("ab|c")])
    assert raw.shape == (1, 4, 5)
    (decoded,) = before.result(60).outputs
    assert isinstance(decoded, Decoded)
    assert decoded.pieces == ("x", "y", "-", "z")


def test_nothing_asked_nothing_heard(session: DeviceSession) -> None:
    session.configure(WAVEFORM, None, OWN)
    assert heard(session, []) == []


def test_text_of_other_scripts_arrives_as_it_is(session: DeviceSession) -> None:
    words = ["_", "\u00e9", "\u8a9e", "\U0001f600", '"\\']
    session.configure(WAVEFORM, None, {**CTC, "vocabulary": words, "space": None})
    (decoded,) = heard(session, [spelt("abc|")])
    assert decoded.pieces == tuple(words[1:])


def test_a_decoder_that_does_not_fit_leaves_the_agent_as_it_was(session: DeviceSession) -> None:
    session.configure(WAVEFORM, None, OWN)
    with pytest.raises(ModelError, match="2 scores"):
        session.configure(WAVEFORM, None, {**CTC, "vocabulary": ["_", "a"]})
    with pytest.raises(UsageError, match="tokens, ctc"):
        session.configure(WAVEFORM, None, {**CTC, "kind": "beam"})
    (decoded,) = heard(session, [spelt("ab")])
    assert decoded.pieces == ("a", "b")


def test_a_token_out_of_range_is_one_error_and_the_agent_goes_on(device, tmp_path) -> None:
    path = token_model(tmp_path / "m.onnx", decoder={"kind": "tokens", "vocabulary": ["a", "b"]})
    session = open_device(device, path)
    session.configure(WAVEFORM, None, OWN)
    error = session.submit([spelt("_a|")]).exception(60)
    assert isinstance(error, ModelError)
    assert "names token 4" in str(error)
    assert heard(session, [spelt("_a")])[0].pieces == ("a", "b")
    session.close()


def test_a_large_vocabulary_arrives(device: Device, tmp_path: Path) -> None:
    session = open_device(device, ctc_model(tmp_path / "m.onnx", decoder=None))
    assert session.model.decoder is None
    with pytest.raises(ModelError, match=r"metadata 'edgeflare\.decoder'"):
        session.configure(WAVEFORM, None, OWN)
    words = [f"word{n}" for n in range(50_000)]
    with pytest.raises(ModelError, match="50000 tokens"):
        session.configure(WAVEFORM, None, {"kind": "ctc", "vocabulary": words})
    session.close()
