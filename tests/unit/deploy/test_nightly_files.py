"""The files of deploy/nightly: units, workflows and the example configuration are what their readers take."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from stand_ins import DEPLOY, write_command

NIGHTLY = DEPLOY / "nightly"
UNITS = ("edgeflare-nightly.service", "edgeflare-nightly.timer")
WORKFLOWS = {"github-workflow.yml": "vendor.github-workflows", "gitlab-ci.yml": "vendor.gitlab-ci"}

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)
needs_shellcheck = pytest.mark.skipif(
    shutil.which("shellcheck") is None, reason="shellcheck is not installed"
)


def _verify(mode: str, folder: Path, home: Path, *units: str) -> str:
    """Return what ``systemd-analyze verify`` says against the units; it says nothing of good ones."""
    done = subprocess.run(
        ["systemd-analyze", mode, "--man=no", "verify", *(folder / unit for unit in units)],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home)},
        check=False,
    )
    told = done.stdout + done.stderr
    return told or ("" if done.returncode == 0 else f"exit code {done.returncode}")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with an edgeflare where docs/how-to/nightly.md puts it."""
    home = tmp_path / "home"
    write_command(home / "edgeflare" / "python" / "bin", "edgeflare", "exit 0")
    return home


@needs_systemd
def test_the_user_units_pass_systemd_analyze(home: Path) -> None:
    units = (*UNITS, "edgeflare-nightly-failed@.service")
    assert _verify("--user", NIGHTLY, home, *units) == ""


@needs_systemd
def test_the_system_units_with_their_settings_pass_systemd_analyze(tmp_path, home) -> None:
    units = tmp_path / "units"
    settings = units / "edgeflare-nightly.service.d"
    settings.mkdir(parents=True)
    for path in NIGHTLY.glob("*.service"):
        shutil.copy(path, units)
    shutil.copy(NIGHTLY / "edgeflare-nightly.timer", units)
    text = (NIGHTLY / "system.conf").read_text(encoding="utf-8")
    here = text.replace("/opt/edgeflare", str(home / "edgeflare"))
    (settings / "system.conf").write_text(here, encoding="utf-8")
    other_home = tmp_path / "root"
    assert _verify("--system", units, other_home, *UNITS) == ""
    (settings / "system.conf").write_text(here.replace("ExecStart=\n", ""), encoding="utf-8")
    assert "is not executable" in _verify("--system", units, other_home, *UNITS)


@needs_systemd
def test_the_timer_starts_every_night_at_two() -> None:
    timer = (NIGHTLY / "edgeflare-nightly.timer").read_text(encoding="utf-8")
    told = re.search(r"^OnCalendar=(.*)$", timer, re.MULTILINE)
    base = "2026-11-22 12:00:00 UTC"
    done = subprocess.run(
        ["systemd-analyze", "calendar", "--iterations=2", f"--base-time={base}", told[1]],
        capture_output=True,
        text=True,
        env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
        check=True,
    )
    times = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", done.stdout)
    assert [time for time in times if time != base][-2:] == [
        "2026-11-23 02:00:00 UTC",
        "2026-11-24 02:00:00 UTC",
    ]


@pytest.mark.parametrize(("name", "schema"), WORKFLOWS.items())
def test_a_workflow_fits_its_schema(name: str, schema: str, tmp_path: Path) -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*check, NIGHTLY / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (NIGHTLY / name).read_text(encoding="utf-8")
    wrong = tmp_path / name
    wrong.write_text(re.sub(r"^( +)(timeout\S*:) .*$", r"\1\2 {}", text, flags=re.MULTILINE))
    done = subprocess.run([*check, wrong], capture_output=True, text=True, check=False)
    assert done.returncode == 1


def test_github_ends_a_night_that_hangs() -> None:
    schema = "custom.github-workflows-require-timeout"
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run(
        [*check, NIGHTLY / "github-workflow.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflows_pass_yamllint() -> None:
    rules = "{extends: default, rules: {line-length: {max: 130}}}"
    done = subprocess.run(
        [sys.executable, "-m", "yamllint", "--strict", "-d", rules, *NIGHTLY.glob("*.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def _scripts() -> Iterator[tuple[str, str, str]]:
    """Every script within another file, as (where, shell, text)."""
    workflow = _yaml("github-workflow.yml")
    for step in workflow["jobs"]["nightly"]["steps"]:
        if "run" in step:
            yield step["name"], "bash", step["run"]
    job = _yaml("gitlab-ci.yml")["edgeflare-nightly"]
    for part in ("script", "after_script"):
        yield f"gitlab {part}", "bash", "\n".join(job[part])
    unit = (NIGHTLY / "edgeflare-nightly-failed@.service").read_text(encoding="utf-8")
    told = re.search(r"^ExecStart=/bin/sh -c '(.*)'$", unit, re.MULTILINE)
    yield "failed@.service", "sh", told[1].replace("$$", "$")


def _yaml(name: str) -> Any:
    return yaml.safe_load((NIGHTLY / name).read_text(encoding="utf-8"))


@needs_shellcheck
@pytest.mark.parametrize(("where", "shell", "text"), list(_scripts()), ids=lambda one: one[:20])
def test_an_embedded_script_passes_shellcheck(where: str, shell: str, text: str) -> None:
    done = subprocess.run(
        ["shellcheck", "-s", shell, "-e", "SC2154", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{where}: {done.stdout}"


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """A history of two nights, and an edgeflare that adds the second one and finds it red."""
    history = tmp_path / "history"
    for stamp in ("20261121T020000Z", "20261122T020000Z"):
        search = history / "nights" / stamp / "digits" / "pi" / "search"
        (search / "report-pictures").mkdir(parents=True)
        (search / "samples").mkdir()
        (search / "report-pictures" / "1.png").write_bytes(b"")
        (search / "samples" / "1.npy").write_bytes(b"")
        (search / "report.html").write_text(stamp, encoding="utf-8")
        for name in ("night.json", "junit.xml", "log.txt"):
            (search.parents[2] / name).write_text(stamp, encoding="utf-8")
    (history / "index.html").write_text("trends", encoding="utf-8")
    last = history / "nights" / "20261121T020000Z"
    for path in (last, *last.rglob("*")):
        os.utime(path, (1, 1))
    write_command(
        tmp_path,
        "edgeflare",
        f'case $1 in report) echo "report of $2" ;; '
        f"*) find {history}/nights/20261122T020000Z -exec touch -d '+1 minute' {{}} + ; "
        "exit 1 ;; esac",
    )
    return tmp_path


def _bash(text: str, folder: Path, **more: str) -> int:
    environment = {
        **os.environ,
        "EDGEFLARE": str(folder / "edgeflare"),
        "HISTORY": str(folder / "history"),
        **more,
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text], cwd=folder, env=environment, check=False
    ).returncode


def test_the_github_job_fails_by_a_red_night_and_tells_only_of_tonight(night: Path) -> None:
    steps = {
        step["name"]: step["run"]
        for step in _yaml("github-workflow.yml")["jobs"]["nightly"]["steps"]
        if "run" in step
    }
    summary, output = night / "summary.md", night / "output"
    more = {
        "RUNNER_TEMP": str(night),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(output),
    }
    assert _bash(steps["Replay, search, compare"], night, **more) == 1
    assert _bash(steps["Tell what was found"], night, **more) == 0
    tonight = night / "history" / "nights" / "20261122T020000Z"
    assert summary.read_text() == f"report of {tonight}/digits/pi/search\n"
    assert output.read_text() == f"folder={tonight}\n"


def test_the_github_job_says_so_where_no_night_was_started(night: Path) -> None:
    steps = _yaml("github-workflow.yml")["jobs"]["nightly"]["steps"]
    telling = next(step for step in steps if step.get("id") == "night")
    shutil.rmtree(night / "history" / "nights" / "20261122T020000Z")
    (night / "began").touch()
    summary = night / "summary.md"
    more = {"RUNNER_TEMP": str(night), "GITHUB_STEP_SUMMARY": str(summary)}
    assert _bash(telling["run"], night, GITHUB_OUTPUT=os.devnull, **more) == 0
    assert "night was begun" in summary.read_text()


def test_the_gitlab_job_keeps_tonights_reports_and_no_samples(night: Path) -> None:
    job = _yaml("gitlab-ci.yml")["edgeflare-nightly"]
    assert _bash("\n".join(job["script"]), night) == 1
    assert _bash("\n".join(job["after_script"]), night) == 0
    kept = night / "nightly"
    assert sorted(
        path.relative_to(kept).as_posix() for path in kept.rglob("*") if path.is_file()
    ) == [
        "index.html",
        *(
            f"nights/20261122T020000Z/{name}"
            for name in (
                "digits/pi/search/report-pictures/1.png",
                "digits/pi/search/report.html",
                "junit.xml",
                "log.txt",
                "night.json",
            )
        ),
    ]
    assert list(night.glob(job["artifacts"]["reports"]["junit"])) == [
        kept / "nights" / "20261122T020000Z" / "junit.xml"
    ]


def test_a_failed_unit_is_mailed_with_the_end_of_its_log(tmp_path: Path) -> None:
    *_, (_, _, text) = _scripts()
    write_command(tmp_path, "journalctl", 'echo "log: $*"')
    write_command(
        tmp_path, "mail", f'echo "mail $*" >{tmp_path}/mail.txt; cat >>{tmp_path}/mail.txt'
    )
    text = text.replace("%i", "edgeflare-nightly.service").replace("%H", "bench")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "MAIL_TO": "ann@example.org"}
    subprocess.run(["sh", "-c", text], env=environment, check=True)
    subject, log = (tmp_path / "mail.txt").read_text(encoding="utf-8").splitlines()
    assert "mail -s edgeflare-nightly.service" in subject
    assert "--lines=60" in log
    assert "--user-unit=edgeflare-nightly.service" in log


def test_the_example_configuration_loads_with_all_its_campaigns(tmp_path: Path) -> None:
    from edgeflare.nightly.config import load_nightly

    shutil.copy(NIGHTLY / "nightly.toml", tmp_path)
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "campaign.toml").write_text(
        'original.path = "o.onnx"\ndeployed.path = "d.onnx"\nseeds.path = "seeds.npz"\n',
        encoding="utf-8",
    )
    config = load_nightly(tmp_path / "nightly.toml")
    assert config.history == tmp_path / "history"
    for model in config.models:
        for device in config.devices:
            campaign = config.campaign(model, device)
            assert campaign.devices == (device,)
            assert campaign.fleet.total_queries == 20_000
            assert campaign.limits.max_new_triggers == 0
