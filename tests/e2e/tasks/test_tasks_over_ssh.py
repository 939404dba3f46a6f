"""Campaigns over SSH with models that answer with maps, embeddings, vectors, one score or several labels."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import must_run
from ssh_servers import SshServer
from value_models import VALUES, photographs, value_pair

from edgeflare.answers.metrics import decides_equally, disagreement
from edgeflare.store import Store
from edgeflare.types import TRIGGERS

pytestmark = pytest.mark.sshd


@pytest.fixture
def home(tmp_path: Path, openssh_server: SshServer) -> Path:
    known: dict[str, Any] = {
        "host": openssh_server.host,
        "user": openssh_server.user,
        "key": str(openssh_server.key),
        "known_hosts": str(openssh_server.known_hosts),
        "python": sys.executable,
        "cache": str(tmp_path / "cache"),
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in known.items()]
    (tmp_path / "devices.toml").write_text(
        "\n".join(["[devices.board]", *lines, f"port = {openssh_server.port}"])
    )
    rng = np.random.default_rng(2)
    np.savez(tmp_path / "gallery.npz", embeddings=rng.normal(size=(6, VALUES)))
    np.savez(tmp_path / "fixed.npz", gain=np.array([[1.5]], np.float32))
    photographs(tmp_path / "seeds.npz")
    return tmp_path


def case(kind: str, *stated: object, name: str, at: str = "extended") -> Any:
    """Return a case of the extended tests or of the slow ones: one of them is enough for each change."""
    return pytest.param(kind, stated, id=name, marks=getattr(pytest.mark, at))


@pytest.mark.parametrize(
    ("kind", "stated"),
    [
        case("first", "--task", "dense", "--tolerance", 0.05, name="dense"),
        case("vector", "--task", "embedding", "--tolerance", 0.005, name="embedding", at="slow"),
        case(
            "vector", "--task", "embedding", "--gallery", "gallery.npz", name="gallery", at="slow"
        ),
        pytest.param("vector", ("--task", "vector", "--tolerance", 0.3), id="vector"),
        case("scores", "--fixed-inputs", "fixed.npz", name="two inputs", at="slow"),
        case("binary", "--output", "sigmoid", name="binary"),
        case("tags", "--task", "multi-label", name="multi-label", at="slow"),
    ],
)
def test_each_task_is_searched_stored_and_reported(home, kind, stated) -> None:
    inputs = 2 if "--fixed-inputs" in stated else 1
    original, deployed = value_pair(home, kind, inputs)
    models = ("--original", original, "--deployed", deployed, "--seeds", "seeds.npz")
    limits = ("--no-survey", "--max-queries", 60, "--workers", 0, "--device", "board")
    must_run("run", *models, *limits, *stated, "--out", "c", home=home)

    least = float(stated[-1]) if "--tolerance" in stated else 0.0
    with Store.open(home / "c") as store:
        found = [one for one in store.outcomes() if one.status in TRIGGERS]
    assert found
    for one in found:
        assert one.original is not None
        assert one.deployed is not None
        assert not decides_equally(one.original, one.deployed)
        assert disagreement(one.original, one.deployed) > least
    must_run("report", "c", "--format", "markdown", home=home)
    must_run("replay", "c", "--out", "again", home=home)
