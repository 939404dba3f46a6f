"""A real keyword spotter, float against int8, heard by the second: on this machine and through a real SSH server."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import soundfile
from campaigns import found_in
from command import Ran, edgeflare, must_run
from ssh_servers import SshServer

from edgeflare.store import Store
from edgeflare.types import TRIGGERS

pytestmark = [pytest.mark.shared_data, pytest.mark.extended]

CLIPS = ("tflm_yes_1000ms.wav", "tflm_no_1000ms.wav", "cards_001.wav", "speechbrain_spk1_snt1.wav")


@pytest.fixture
def clips(tmp_path: Path, shared_data: Path) -> Path:
    """A folder of spoken words and sentences: six windows of a second."""
    folder = tmp_path / "clips"
    folder.mkdir()
    for name in CLIPS:
        shutil.copy(shared_data / "audio" / "speech" / name, folder)
    return folder


def pair(data: Path, clips: Path) -> list[object]:
    """Return the flags that name models, front end and seeds."""
    models = data / "models" / "mlperf-tiny"
    return [
        *("--original", models / "kws_dscnn_float.tflite"),
        *("--deployed", models / "kws_dscnn_int8.tflite"),
        *("--input", "front_end=mlperf-tiny-kws"),
        *("--seeds", clips, "--cut", "windows"),
    ]


def run(home: Path, data: Path, clips: Path, out: str, *more: object) -> Ran:
    return must_run("run", *pair(data, clips), "--out", out, "--json", *more, home=home)


def board(home: Path, server: SshServer) -> None:
    """Put the server into the inventory as a board whose key is trusted."""
    (home / "devices.toml").write_text(
        "[devices.board]\n"
        f"host = {json.dumps(server.host)}\nport = {server.port}\nuser = {json.dumps(server.user)}\n"
        f"key = {json.dumps(str(server.key))}\npython = {json.dumps(sys.executable)}\n"
        f"cache = {json.dumps(str(home / 'cache'))}\n"
    )
    trusted = ("devices", "trust", "board", "--fingerprint", server.fingerprint)
    assert edgeflare(*trusted, home=home).code == 0


@pytest.mark.parametrize(
    "strategy",
    [
        ("--strategy", "dflare"),
        pytest.param(("--strategy", "boundary"), marks=pytest.mark.slow),
        ("--strategy", "diffchaser", "--option", "population=20", "--max-queries", "200"),
    ],
    ids=["dflare", "boundary", "diffchaser"],
)
def test_every_strategy_finds_the_same_here_and_over_ssh(
    tmp_path: Path, shared_data: Path, clips: Path, openssh_server: SshServer, strategy: list[str]
) -> None:
    board(tmp_path, openssh_server)
    few = ("--limit", 2)
    here = run(tmp_path, shared_data, clips, "here", *strategy, *few, "--concurrency", 1)
    run(tmp_path, shared_data, clips, "there", *strategy, *few, "--device", "board")
    assert found_in(tmp_path / "here") == found_in(tmp_path / "there")
    assert here.json["seeds"] == 2
    assert here.json["found"] >= 1


def test_what_was_found_can_be_heard_kept_and_is_found_again(tmp_path, shared_data, clips) -> None:
    run(tmp_path, shared_data, clips, "campaign", "--limit", 2)
    must_run("export", "campaign", "sounds", home=tmp_path)
    with Store.open(tmp_path / "campaign") as store:
        found = [one for one in store.outcomes() if one.status in TRIGGERS]
        triggers = [store.get_sample(one.trigger or "") for one in found]
    assert len(found) == 2
    played = [
        soundfile.read(path, dtype="float32")
        for path in sorted((tmp_path / "sounds").rglob("*trigger*.wav"))
    ]
    assert len(played) == len(found)
    assert {rate for _, rate in played} == {16000}
    assert sorted(len(one) for one, _ in played) == sorted(map(len, triggers))

    must_run("corpus", "add", "clips.corpus", "campaign", home=tmp_path)
    models = pair(shared_data, clips)[:6]
    for source, out in ((("campaign",), "again"), (("clips.corpus", *models), "of-corpus")):
        again = must_run("replay", *source, "--out", out, "--json", home=tmp_path)
        assert again.json["counts"]["still"] == len(found)
        assert again.json["counts"]["fixed"] == 0
