"""The zipapp: same sources, same bytes, whole or absent."""

import hashlib
import os
import time
import zipfile
from pathlib import Path

import pytest

import edgeflare_agent
from edgeflare.devices.provisioning.upload import agent_bundle
from edgeflare.errors import DeviceError


def test_the_name_is_the_contents_hash(tmp_path: Path) -> None:
    path = agent_bundle(tmp_path / "new" / "folder")
    assert path.name == hashlib.sha256(path.read_bytes()).hexdigest() + ".pyz"
    assert list(path.parent.iterdir()) == [path]


def test_the_same_sources_give_the_same_bytes_later_and_elsewhere(tmp_path, monkeypatch) -> None:
    first = agent_bundle(tmp_path / "a")
    later = time.time() + 86400
    monkeypatch.setattr(time, "time", lambda: later)
    package = tmp_path / "elsewhere" / "edgeflare_agent"
    for source in Path(edgeflare_agent.__file__).parent.rglob("*"):
        if source.suffix in (".py", ".pyc"):
            target = package / source.relative_to(Path(edgeflare_agent.__file__).parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(0o600)
    monkeypatch.setattr(edgeflare_agent, "__file__", str(package / "__init__.py"))
    assert agent_bundle(tmp_path / "b").name == first.name
    (package / "telemetry.py").write_text("changed = 1\n")
    assert agent_bundle(tmp_path / "b").name != first.name


def test_a_bundle_that_is_there_is_used_again(tmp_path: Path) -> None:
    path = agent_bundle(tmp_path)
    os.utime(path, (1, 1))
    assert agent_bundle(tmp_path).stat().st_mtime == 1


def test_a_damaged_bundle_is_replaced(tmp_path: Path) -> None:
    path = agent_bundle(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    assert agent_bundle(tmp_path).read_bytes() == whole


def test_it_holds_the_agents_sources_and_nothing_else(tmp_path: Path) -> None:
    package = Path(edgeflare_agent.__file__).parent
    sources = {
        f"edgeflare_agent/{p.relative_to(package).as_posix()}" for p in package.rglob("*.py")
    }
    with zipfile.ZipFile(agent_bundle(tmp_path)) as bundle:
        assert set(bundle.namelist()) == sources | {"__main__.py"}
        assert bundle.read("__main__.py") == (package / "__main__.py").read_bytes()


def test_a_folder_that_cant_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DeviceError, match=f"{tmp_path / 'file'}"):
        agent_bundle(tmp_path / "file")
