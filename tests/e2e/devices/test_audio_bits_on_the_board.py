"""A front end gives the same bits on this machine and on a board of another architecture."""

import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from audio_specs import KWS, KWS_INT8, OPEN, WHISPER, clip
from virtual_board import VirtualBoard

from edgeflare.devices import connect
from edgeflare_agent.preprocess import prepare

PROJECT = Path(__file__).resolve().parents[3]
PREPARE = """
import hashlib, io, os, platform, sys, tarfile, tempfile
folder = tempfile.mkdtemp()
tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())).extractall(folder)
sys.path[:0] = [os.path.join(folder, "agent"), folder]
import numpy as np
import audio_specs
from edgeflare_agent.preprocess import prepare
print(platform.machine())
clips = np.load(os.path.join(folder, "clips.npz"))
for name in clips:
    for spec in (audio_specs.KWS, audio_specs.KWS_INT8, audio_specs.WHISPER, audio_specs.OPEN):
        print(hashlib.sha256(prepare(clips[name], spec).tobytes()).hexdigest())
"""


def clips() -> dict[str, np.ndarray]:
    """Noise that swells and fades, tones, a chirp with rounded samples of any size, and near silence."""
    time = np.arange(40000) / 16000
    tones = 0.5 * np.sin(2 * np.pi * 440 * time) + 0.4 * np.sin(2 * np.pi * 3000.5 * time)
    return {
        "noise": clip(30000, 5),
        "tones": tones.astype(np.float32),
        "chirp": np.sin(2000 * time**2).astype(np.float32),
        "faint": clip(16000, 6) * np.float32(1e-6),
    }


def archive() -> bytes:
    """Return the agent, the specs and the clips as a tar file."""
    packed = io.BytesIO()
    arrays = io.BytesIO()
    np.savez(arrays, **clips())
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        tar.add(PROJECT / "agent", "agent")
        tar.add(PROJECT / "tests" / "helpers" / "audio_specs.py", "audio_specs.py")
        about = tarfile.TarInfo("clips.npz")
        about.size = len(arrays.getvalue())
        tar.addfile(about, io.BytesIO(arrays.getvalue()))
    return packed.getvalue()


@pytest.mark.slow
@pytest.mark.virtual
def test_host_and_board_prepare_the_same_bits(virtual_board: VirtualBoard) -> None:
    transport = connect(virtual_board.device)
    try:
        done = transport.run(["-c", PREPARE], archive(), timeout=600)
    finally:
        transport.close()
    assert done.status == 0, done.stderr[-2000:]
    machine, *digests = done.stdout.decode().split()
    assert machine == "aarch64"
    assert digests == [
        hashlib.sha256(prepare(sample, spec).tobytes()).hexdigest()
        for sample in clips().values()
        for spec in (KWS, KWS_INT8, WHISPER, OPEN)
    ]
