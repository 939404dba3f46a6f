"""The pytest plugin in a project of its own, with EdgeFlare installed from a wheel."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import cv2
import pytest
from command import DEMO, ROOT

from edgeflare.store import Store

pytestmark = pytest.mark.extended
PROJECT = ROOT / "tests" / "data" / "pytest_project"


class Project(NamedTuple):
    """A copy of the example project; `programs` has the commands of its environment."""

    folder: Path
    programs: Path

    def run(self, *command: object) -> "subprocess.CompletedProcess[str]":
        kept = ("PATH", "LANG", "TMPDIR")
        return subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            env={
                **{name: os.environ[name] for name in kept if name in os.environ},
                "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self.folder),
                "COLUMNS": "120",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )

    def pytest(self, *arguments: object) -> str:
        """Run pytest in the project; return what it printed."""
        return self.run(
            "python", "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments
        ).stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which has its dependencies from this one's folders."""
    base = tmp_path_factory.mktemp("installed")
    python = base / "venv" / "bin" / "python"
    site = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    for command in (
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", base],
        [sys.executable, "-m", "venv", "--without-pip", base / "venv"],
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--no-index",
            "--no-deps",
            "--no-compile",
        ],
    ):
        wheel = [*base.glob("*.whl")] if "install" in command else []
        done = subprocess.run([*command, *wheel], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    own = next((base / "venv" / "lib").glob("python*/site-packages"))
    (own / "dependencies.pth").write_text("\n".join(site) + "\n")
    return python.parent


@pytest.fixture
def project(tmp_path: Path, programs: Path) -> Project:
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder)
    for name in ("original.onnx", "deployed.tflite", "seeds.npz"):
        shutil.copy(DEMO / name, folder)
    return Project(folder, programs)


def test_green_red_and_skipped(project: Project, programs: Path) -> None:
    where = project.run("python", "-c", "import edgeflare; print(edgeflare.__file__)").stdout
    assert Path(where).is_relative_to(programs.parent), "the wheel is tested"
    printed = project.pytest("test_models.py", "--basetemp", project.folder / "temporary")
    away = r"\[1\] test_models.py:\d+: the device is away: 127.0.0.1:1 refused the connection"
    assert len(re.findall(f"^SKIPPED {away}", printed, re.MULTILINE)) == 3, printed
    for words in (
        "PASSED test_models.py::test_the_models_agree_on_every_digit[local]",
        "PASSED test_models.py::test_no_trigger_is_severe[board]",
        "PASSED test_models.py::test_of_something_else",
        "FAILED test_models.py::test_no_trigger_is_found[local] - AssertionError: deployed.tflite",
        "1 failed, 3 passed, 3 skipped",
    ):
        assert words in printed, printed
    text = "\n".join(re.findall("^E {7}(.*)", printed, re.MULTILINE))
    assert "original.onnx: max_deviation_rate" in text
    assert "site-packages" not in printed, "the traceback ends in the user's test"
    labels = [line.partition(":")[0] for line in text.splitlines() if line[0] != " "]
    assert labels[2:] == ["seed", "original", "deployed", "picture", "replay"]
    shown = dict(re.findall("^(seed|picture|replay): +(.*)$", text, re.MULTILINE))
    assert shown["seed"].startswith("seeds.npz:")
    assert Path(shown["picture"]).is_relative_to(project.folder / "temporary")
    assert cv2.imread(shown["picture"]).shape == (252, 3 * 252 + 2 * 8, 3)
    replayed = project.run("bash", "-c", shown["replay"])
    assert replayed.returncode == 0, replayed.stdout
    assert "deviates (confirmed 2" in replayed.stdout


@pytest.mark.slow
def test_two_processes_have_one_device_one_after_the_other(project: Project) -> None:
    printed = project.pytest("test_one_board.py", "-n", "2")
    assert "2 passed" in printed, printed
    periods = []
    for folder in (project.folder / "kept").iterdir():
        with Store.open(folder) as store:
            ends = [one.finished_at for one in store.outcomes()]
            periods.append((store.created_at, max(ends)))
    first, second = sorted(periods)
    assert first[1] < second[0]


def test_devices_and_markers_choose_what_is_collected(project: Project) -> None:
    devices = ("--edgeflare-device", "board", "--edgeflare-device", "unplugged")
    collect = ("--collect-only", "-q", "test_models.py")
    printed = project.pytest(*collect, "-m", "edgeflare", *devices)
    assert re.findall("::(.*)", printed) == [
        "test_the_models_agree_on_every_digit[board]",
        "test_no_trigger_is_found[board]",
        "test_no_trigger_is_severe[board]",
        "test_the_models_agree_on_every_digit[unplugged]",
        "test_no_trigger_is_found[unplugged]",
        "test_no_trigger_is_severe[unplugged]",
        "test_a_search_of_my_own",
    ], printed
    (project.folder / "pytest.ini").write_text("[pytest]\nedgeflare_device = board\n")
    printed = project.pytest(*collect, "--strict-markers", "-m", "not edgeflare")
    assert re.findall("::(.*)", printed) == ["test_a_device_by_name", "test_of_something_else"]
    printed = project.pytest("--collect-only", "-q", "test_models.py", "-k", "every_digit")
    assert "every_digit[board]" in printed


def test_only_errors_of_a_device_that_is_away_skip_a_test(project: Project) -> None:
    (project.folder / "test_errors.py").write_text(
        "import pytest\nfrom edgeflare import errors\n\n"
        "@pytest.mark.edgeflare\n"
        "@pytest.mark.parametrize('kind', ['AgentDied', 'DeviceAway', 'DeviceTimeout', 'Unreachable',"
        " 'AgentCrashed', 'InferenceTimeout', 'DeviceRuntime', 'Model'])\n"
        "def test_marked(kind): raise getattr(errors, f'{kind}Error')('why')\n\n"
        "def test_unmarked(): raise errors.UnreachableError('why')\n"
    )
    printed = project.pytest("test_errors.py")
    assert "SKIPPED [4] test_errors.py:4" in printed, printed
    assert "5 failed, 4" in printed


def test_what_is_wrong_is_one_sentence(project: Project) -> None:
    (project.folder / "test_wrong.py").write_text(
        "import pytest, edgeflare\n\n"
        "def test_name(edgeflare_device): ...\n\n"
        "def test_away():\n"
        "    edgeflare.assert_agrees('original.onnx', 'deployed.tflite', 'seeds.npz', device='unplugged')\n\n"
        "def test_model():\n"
        "    edgeflare.assert_agrees('gone.onnx', 'deployed.tflite', 'seeds.npz', device='local')\n\n"
        "def test_elsewhere():\n"
        "    edgeflare.assert_agrees('original.onnx', 'deployed.tflite', 'seeds.npz')\n"
    )
    stated = ("--edgeflare-device", "bord", "--edgeflare-away", "fail")
    printed = project.pytest("test_wrong.py", *stated)
    assert "you mean 'board'?)" in printed
    assert "edgeflare.errors.UnreachableError: 127.0.0.1:1 refused" in printed
    assert "edgeflare.errors.UsageError" in printed
    assert "--edgeflare-device is stated" in printed
    assert "3 failed, 1" in printed
    assert "site-packages" not in printed
    for name, arguments in (("typo", "devise='pi4'"), ("no_fixture", "device='pi4'")):
        text = f"import pytest\n\n@pytest.mark.edgeflare({arguments})\ndef test_it(): ...\n"
        (project.folder / f"test_{name}.py").write_text(text)
    printed = project.pytest("test_typo.py", "test_no_fixture.py")
    assert "marker edgeflare takes" in printed
    assert "fixture edgeflare_device: add" in printed


@pytest.mark.slow
def test_the_fixtures_device_is_taken_however_a_test_asks_for_it(project: Project) -> None:
    (project.folder / "test_late.py").write_text(
        "import pytest\nfrom edgeflare.assertions.agreement import _device\n\n"
        "@pytest.fixture(scope='session')\n"
        "def of_the_session(edgeflare_device): return _device(None)\n\n"
        "@pytest.mark.parametrize('number', [1, 2])\n"
        "def test_late(request, number):\n"
        "    assert _device(None) == 'local'\n"
        "    request.getfixturevalue('edgeflare_device')\n"
        "    assert _device(None) == 'board'\n\n"
        "def test_without(): assert _device(None) == 'local'\n\n"
        "def test_within(of_the_session): assert of_the_session == _device(None) == 'board'\n"
    )
    (project.folder / "pytest.ini").write_text("[pytest]\nedgeflare_device = board\n")
    printed = project.pytest("test_late.py")
    assert "4 passed" in printed, printed


@pytest.mark.slow
def test_a_tests_own_parametrize_names_the_devices(project: Project) -> None:
    (project.folder / "test_own.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.parametrize('edgeflare_device', ['board', 'local'], indirect=True)\n"
        "def test_alone(edgeflare_device): ...\n\n"
        "@pytest.mark.parametrize('number, edgeflare_device', [(1, 'board')],"
        " indirect=['edgeflare_device'])\n"
        "def test_with_another(number, edgeflare_device): assert edgeflare_device == 'board'\n"
    )
    printed = project.pytest("test_own.py", "--edgeflare-device", "unplugged")
    assert re.findall("PASSED test_own.py::(.*)", printed) == [
        "test_alone[board]",
        "test_alone[local]",
        "test_with_another[1-board]",
    ], printed


@pytest.mark.slow
def test_without_temporary_folders_campaigns_are_kept_as_elsewhere(project: Project) -> None:
    (project.folder / "test_plain.py").write_text(
        "import edgeflare\n\n"
        "def test_of_something_else(): ...\n\n"
        "def test_models():\n"
        "    seeds = {'path': 'seeds.npz', 'limit': 2}\n"
        "    edgeflare.assert_agrees('original.onnx', 'deployed.tflite', seeds)\n"
    )
    printed = project.pytest("test_plain.py", "-p", "no:tmpdir")
    assert "2 passed" in printed, printed
    assert len(list((project.folder / "campaigns").iterdir())) == 1


def test_a_campaign_that_is_not_finished_fails(project: Project) -> None:
    (project.folder / "test_limited.py").write_text(
        "import edgeflare\n\n"
        "def test_models():\n"
        "    seeds = {'path': 'seeds.npz', 'limit': 2}\n"
        "    limits = {'max_disagreement': 1.0}\n"
        "    edgeflare.assert_agrees('original.onnx', 'deployed.tflite', seeds, limits=limits,"
        " fleet={'total_queries': 3})\n"
    )
    printed = project.pytest("test_limited.py")
    assert "1 failed" in printed, printed
    assert "original.onnx: not finished" in printed
    assert "unfinished: the campaign" in printed
    resumed = re.findall("^E +resume: +(.*)$", printed, re.MULTILINE)
    done = project.run("bash", "-c", f"{resumed[0]} --total-queries 100000")
    assert done.returncode == 0, done.stdout
