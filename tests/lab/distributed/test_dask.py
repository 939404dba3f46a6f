"""Campaigns on workers of a real Dask scheduler give what one process gives, whatever happens."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns import all_of, finished
from command import DEMO, DEMO_PAIR, edgeflare
from dask_lab import Authority, Lab, Process, demo, device, lab, wait_for

from edgeflare import CampaignConfig, UsageError, resume_campaign, run_campaign
from edgeflare.campaign import Notice, survey_alone
from edgeflare.errors import DeviceBusyError, StoreError, UnreachableError
from edgeflare.store import Store
from edgeflare_lab.distributed import DaskCluster, Tls, cluster

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
pytestmark = pytest.mark.extended

LONG = {"strategy": "dflare", "max_queries": 300}
"""A search that takes some seconds."""


@pytest.fixture(scope="module")
def one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What one process finds: of the usual search with a survey, and of a long one."""
    folder = tmp_path_factory.mktemp("one")
    usual = run_campaign(demo(folder / "usual", survey={"enabled": True, "pursuit": 40}))
    long = run_campaign(long_one(folder / "long"))
    return {"usual": all_of(usual), "long": all_of(long)}


def long_one(out: Path) -> CampaignConfig:
    path = str(Path(demo(out).seeds.path))
    return demo(out, search=LONG, survey={"enabled": False}, seeds={"path": path, "limit": 100})


def on(made: Lab, config: CampaignConfig, notices: list[str] | None = None) -> Path:
    """Run a campaign on the workers of a lab."""
    heard = [] if notices is None else notices
    with DaskCluster(made.address) as crew:
        return run_campaign(
            config,
            cluster=crew,
            progress=lambda event: heard.append(event.text) if isinstance(event, Notice) else None,
        )


def run_long(made: Lab, out: Path, *flags: object) -> Process:
    """Start `edgeflare run` of the long campaign, and wait until it has found something."""
    config = long_one(out)
    process = made.edgeflare(
        *("run", "--original", config.original.path, "--deployed", config.deployed.path),
        *("--seeds", config.seeds.path, "--limit", 100, "--workers", 0, "--out", out),
        *("--strategy", "dflare", "--max-queries", 300, "--no-survey", "--dask", made.address),
        *flags,
        log="run",
    )
    wait_for(lambda: finished(out) >= 2, "the first searches", process)
    return process


def unlike(folder: Path, expected: dict[str, object]) -> list[str]:
    """What differs, but for notices on workers and devices."""
    found = all_of(folder)
    return [key for key in found if "notices" not in key and found[key] != expected[key]]


def test_two_workers_find_what_one_process_finds(tmp_path: Path, one_process) -> None:
    with lab(tmp_path, "a", "b") as made:
        config = demo(tmp_path / "two", survey={"enabled": True, "pursuit": 40})
        folder = on(made, config)
        with Store.open(folder) as store:
            names = {one.device_name for one in store.outcomes()}
    assert all_of(folder) == one_process["usual"]
    assert names == {"board@a", "board@b"}


@pytest.mark.slow
def test_a_survey_alone_finds_the_same_on_workers(tmp_path: Path) -> None:
    seeds = {"path": str(DEMO / "seeds.npz"), "limit": 8}
    alone = run_campaign(survey_alone(demo(tmp_path / "one", seeds=seeds)))
    with lab(tmp_path, "a") as made:
        flags = ("--limit", 8, "--workers", 0, "--out", tmp_path / "two", "--dask", made.address)
        survey = made.edgeflare("survey", *DEMO_PAIR, *flags, log="survey")
        assert survey.wait() == 0, survey.text
    assert unlike(tmp_path / "two", all_of(alone)) == []


BROKEN = """
from edgeflare_lab.distributed import boards
from edgeflare.errors import StoreError, UsageError
def refuse(*_):
    raise {error}
boards.{name} = refuse
import edgeflare.cli
edgeflare.cli.main()
"""
"""A worker on whose host something is missing."""
NO_STORE = ("-c", BROKEN.format(name="folder_at", error="StoreError('no password here')"))
NO_FIT = ("-c", BROKEN.format(name="resolve_pair", error="UsageError('other classes here')"))
SLOW = """
import time
from edgeflare_lab.distributed import boards
resolve = boards.resolve_pair
boards.resolve_pair = lambda *given: time.sleep(5) or resolve(*given)
import edgeflare.cli
edgeflare.cli.main()
"""
"""A worker that takes long to open its devices."""


@pytest.mark.slow
def test_workers_that_cannot_take_part_leave_the_others_alone(tmp_path: Path, one_process) -> None:
    with lab(tmp_path, "a", "b") as made:
        made.start_worker("c", program=NO_STORE)
        made.start_worker("d", program=NO_FIT)
        notices: list[str] = []
        folder = on(made, demo(tmp_path / "four", survey={"enabled": True, "pursuit": 40}), notices)
        with Store.open(folder) as store:
            names = {one.device_name for one in store.outcomes()}
    assert unlike(folder, one_process["usual"]) == []
    assert names == {"board@a", "board@b"}
    for problem in ("c: no password here", "d: other classes here"):
        assert f"worker {problem}" in "\n".join(notices)


@pytest.mark.slow
def test_where_no_worker_can_take_part_it_is_their_problem(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        first = made.start_worker("c", program=NO_STORE)
        with pytest.raises(StoreError, match="password here"):
            on(made, demo(tmp_path / "first"))
        first.end()
        made.start_worker("d", program=NO_FIT)
        with pytest.raises(UsageError, match="other classes"):
            on(made, demo(tmp_path / "second"))


def test_a_killed_worker_loses_nothing(tmp_path: Path, one_process) -> None:
    with lab(tmp_path, "a", "b") as made:
        run = run_long(made, tmp_path / "two")
        made.processes[1].end(signal.SIGKILL)
        assert run.wait() == 0, run.text
        assert "gone; its seeds" in run.text
    assert unlike(tmp_path / "two", one_process["long"]) == []


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_found_and_the_devices_are_free_again(tmp_path, one_process) -> None:
    with lab(tmp_path, "a", "b") as made:
        run = run_long(made, tmp_path / "two")
        assert run.end(signal.SIGINT) == 130
        assert "searches are finished" in run.text
        assert 0 < finished(tmp_path / "two") < 100
        with DaskCluster(made.address) as crew:
            resume_campaign(tmp_path / "two", cluster=crew)
    assert unlike(tmp_path / "two", one_process["long"]) == []


@pytest.mark.slow
def test_a_killed_controller_stops_its_workers_and_one_process_goes_on(
    tmp_path: Path, one_process
) -> None:
    with lab(tmp_path, "a") as made:
        run = run_long(made, tmp_path / "two")
        run.end(signal.SIGKILL)
        other = demo(tmp_path / "other")

        def is_free() -> bool:
            try:
                on(made, other)
            except UsageError:
                raise
            except Exception:  # noqa: BLE001 - the worker is busy still
                return False
            return True

        wait_for(is_free, "the worker works for another campaign")
        assert finished(tmp_path / "two") < 100
        resume = made.edgeflare("resume", tmp_path / "two", "--dask", made.address, log="resume")
        assert resume.wait() == 0, resume.text
    assert unlike(tmp_path / "two", one_process["long"]) == []


def test_a_scheduler_that_is_gone_is_one_sentence(tmp_path: Path, one_process) -> None:
    with lab(tmp_path, "a") as made:
        run = run_long(made, tmp_path / "two")
        made.scheduler.end(signal.SIGKILL)
        assert run.wait() == 3, run.text
        assert "`edgeflare resume`" in run.sentence
        worker = made.processes[1]
        assert worker.wait() == 3
        assert "worker again" in worker.sentence
        made.start_scheduler()
        made.start_worker("a")
        with DaskCluster(made.address) as crew:
            resume_campaign(tmp_path / "two", cluster=crew)
    assert unlike(tmp_path / "two", one_process["long"]) == []


@pytest.mark.slow
def test_a_worker_that_comes_later_joins(tmp_path: Path, one_process) -> None:
    with lab(tmp_path, "a") as made:
        run = run_long(made, tmp_path / "two")
        first = made.processes[1].popen
        first.send_signal(signal.SIGSTOP)  # else the campaign may end before the other one is there
        made.start_worker("b")
        wait_for(lambda: "the worker b joins with board@b" in run.text, "worker b", run)
        made.start_worker("c", program=NO_STORE)
        wait_for(lambda: "left out: on the worker c: no password here" in run.text, "worker c", run)
        status = made.edgeflare("status", tmp_path / "two", log="status")
        assert status.wait() == 0, status.text
        assert "board@a" in status.text
        assert "board@b" in status.text
        first.send_signal(signal.SIGCONT)
        assert run.wait() == 0, run.text
    assert unlike(tmp_path / "two", one_process["long"]) == []


@pytest.mark.slow
def test_one_board_in_two_inventories_is_busy_for_the_second(tmp_path: Path, one_process) -> None:
    same = device("board", tmp_path / "cache")
    with lab(tmp_path) as made:
        made.start_worker("a", same)
        made.start_worker("b", same)
        notices: list[str] = []
        folder = on(made, demo(tmp_path / "two", survey={"enabled": True, "pursuit": 40}), notices)
    assert unlike(folder, one_process["usual"]) == []
    (left_out,) = [text for text in notices if text.startswith("left out")]
    assert "campaign two" in left_out


@pytest.mark.slow
def test_a_worker_has_one_campaign_at_a_time(tmp_path: Path) -> None:
    with lab(tmp_path, "a") as made:
        run = run_long(made, tmp_path / "first")
        often = {"distributed.client.scheduler-info-interval": "1ms"}
        busy = "the worker a works for the campaign first; wait until it has ended"
        notices: list[str] = []
        with dask.config.set(often), pytest.raises(DeviceBusyError, match=f"^{busy}$"):
            on(made, demo(tmp_path / "second"), notices)
        assert not [text for text in notices if "left out" in text]
        assert not (tmp_path / "second").exists()
        run.end(signal.SIGINT)


@pytest.mark.slow
def test_another_environment_is_refused_or_marked(tmp_path: Path) -> None:
    other = tmp_path / "other"
    package = other / "onnxruntime-0.1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime\nVersion: 0.1\n")
    with lab(tmp_path) as made:
        path = f"{other}:{made.env['PYTHONPATH']}"
        made.start_worker("a", env={"PYTHONPATH": path})
        with pytest.raises(UsageError, match=r"environment \(onnxruntime"):
            on(made, demo(tmp_path / "refused"))
        assert not (tmp_path / "refused").exists()
        folder = on(made, demo(tmp_path / "mixed", fleet={"allow_mixed": True}))
        made.start_worker("b", program=("-c", SLOW))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster, "_OPEN_S", 0.0)  # it has not opened its devices after that
            waited = on(made, demo(tmp_path / "waited"))
    with Store.open(waited) as store:
        assert {one.device_name for one in store.outcomes()} == {"board@b"}
    with Store.open(folder) as store:
        assert len(store.environments()) == 2
        assert store.environment["onnxruntime"] != "0.1"
        assert any("finds is marked" in text for text in store.notices())


def test_a_model_that_is_another_there_is_refused(tmp_path: Path) -> None:
    config = demo(tmp_path / "two")
    model = str(config.deployed.path)
    with lab(tmp_path, "a") as made, pytest.MonkeyPatch.context() as patch:
        for files, problem in (
            ({model: "0" * 64}, f"another file {model}"),
            ({str(tmp_path / "gone"): "0" * 64}, f"no file {tmp_path / 'gone'}"),
        ):
            patch.setattr(cluster, "campaign_files", lambda _, files=files: files)
            with pytest.raises(UsageError, match=f"{problem}"):
                on(made, config)


def test_without_workers_it_is_one_sentence(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        run = made.edgeflare("demo", log="demo")
        assert run.wait() == 0
        with pytest.raises(Exception, match="start `edgeflare"):
            on(made, demo(tmp_path / "two"))
        made.start_worker("a")
        second = made.start_worker("a", ready=False)
        assert second.wait() == 2, second.text
        assert f"worker at {made.address}" in second.sentence
        with pytest.raises(UsageError, match="device pi4"):
            on(made, demo(tmp_path / "two", devices=["pi4"]))


def test_what_workers_cannot_do_together_is_refused_before_connecting(tmp_path: Path) -> None:
    dask = ("--dask", Lab(tmp_path).address)
    mode = edgeflare("run", *DEMO_PAIR, "--fleet", "replicate", *dask, home=tmp_path)
    limit = edgeflare("resume", tmp_path, "--total-queries", 100, *dask, home=tmp_path)
    for refused in (mode, limit):
        assert refused.code == 2
        assert "--dask" in refused.err
    with lab(tmp_path) as made, pytest.raises(UsageError, match="--dask"):
        on(made, demo(tmp_path / "two", fleet={"mode": "replicate"}))


def test_tls_and_certificates_that_are_refused(tmp_path: Path) -> None:
    authority, strangers = Authority(tmp_path / "ca"), Authority(tmp_path / "strangers")

    def tls(flags: list[str]) -> Tls:
        return Tls(*(Path(file) for file in flags[1::2]))

    with lab(tmp_path, "a", tls=authority) as made:
        good = tls(authority.flags("controller"))
        with DaskCluster(made.address, tls=good) as crew:
            folder = run_campaign(demo(tmp_path / "two"), cluster=crew)
        assert all_of(folder)["finished"]
        with pytest.raises(UnreachableError, match="the certificate"):
            DaskCluster(made.address, tls=tls(strangers.flags("controller")))
        foreign = tls(strangers.flags("controller", ca=authority))
        with pytest.raises(UnreachableError, match="--tls-cert"):
            DaskCluster(made.address, tls=foreign)
        plain = made.address.replace("tls://", "tcp://")
        with pytest.raises(UnreachableError, match=f"try {made.address}"):
            DaskCluster(plain)
        refused = made.start_worker("c", flags=strangers.flags("c"), ready=False)
        assert refused.wait() == 3
        assert "is refused" in refused.sentence


def test_a_port_that_nothing_listens_on_and_one_without_tls(tmp_path: Path) -> None:
    made = Lab(tmp_path)
    with pytest.raises(UnreachableError, match="`dask scheduler`"):
        DaskCluster(made.address)
    made.start_scheduler()
    tls = Tls(*map(Path, Authority(tmp_path / "ca").flags("controller")[1::2]))
    try:
        with pytest.raises(UnreachableError, match=f"try {made.address}"):
            DaskCluster(made.address.replace("tcp", "tls"), tls=tls)
    finally:
        made.scheduler.end()


def test_a_worker_on_another_host_needs_a_database(tmp_path, postgres_server, one_process) -> None:
    elsewhere = ("unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "-")
    tried = subprocess.run([*elsewhere, "true"], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip(f"no host name of its own can be made: {tried.stderr.decode()}")
    with lab(tmp_path) as made:
        made.start_worker("b", before=elsewhere, env={"XDG_CACHE_HOME": str(tmp_path / "there")})
        with pytest.raises(UsageError, match="--store"):
            on(made, demo(tmp_path / "refused"))
        made.start_worker("a")
        config = demo(
            tmp_path / "two",
            survey={"enabled": True, "pursuit": 40},
            store=postgres_server.new_database(),
            samples=str(tmp_path / "samples"),
        )
        folder = on(made, config)
        with Store.open(folder) as store:
            names = {one.device_name for one in store.outcomes()}
    assert unlike(folder, one_process["usual"]) == []
    assert names == {"board@a", "board@b"}
    assert list((tmp_path / "there").rglob("store.json"))


def test_a_worker_of_another_version_is_left_out(tmp_path: Path) -> None:
    older = (
        "import edgeflare._version as own; own.__version__ = '0.1'; import edgeflare.cli; "
        "edgeflare.cli.main()"
    )
    with lab(tmp_path) as made:
        made.start_worker("a", program=("-c", older))
        with pytest.raises(UsageError, match=r"edgeflare 0\.1"):
            on(made, demo(tmp_path / "two"))


@pytest.mark.slow
def test_a_worker_that_is_stopped_gives_its_seeds_to_the_others(tmp_path, one_process) -> None:
    with lab(tmp_path, "a", "b") as made:
        run = run_long(made, tmp_path / "two")
        assert made.processes[1].end(signal.SIGTERM) == 0, made.processes[1].text
        assert run.wait() == 0, run.text
    assert unlike(tmp_path / "two", one_process["long"]) == []


FRAIL = """
import subprocess, sys, threading, time
from pathlib import Path

def is_cut():
    return Path(sys.argv[1]).exists()

if is_cut():
    sys.exit("cut")
child = subprocess.Popen(sys.argv[2:])
def watch():
    while not is_cut():
        time.sleep(0.05)
    child.kill()
threading.Thread(target=watch, daemon=True).start()
sys.exit(child.wait())
"""
"""Runs what it is given until a file exists, and never after."""


@pytest.mark.slow
def test_seeds_of_a_worker_whose_board_is_lost_go_to_the_others(tmp_path, one_process) -> None:
    (tmp_path / "frail.py").write_text(FRAIL)
    cut = tmp_path / "cut"
    python = f"{sys.executable} {tmp_path / 'frail.py'} {cut} {sys.executable}"
    with lab(tmp_path, "b") as made:
        made.start_worker("a", device("board", tmp_path / "cache-a", python=python))
        run = run_long(made, tmp_path / "two", "--handover", 1)
        cut.touch()
        assert run.wait() == 0, run.text
    assert unlike(tmp_path / "two", one_process["long"]) == []


@pytest.mark.slow
def test_a_campaign_without_a_board_left_is_paused(tmp_path: Path, one_process) -> None:
    (tmp_path / "frail.py").write_text(FRAIL)
    cut = tmp_path / "cut"
    python = f"{sys.executable} {tmp_path / 'frail.py'} {cut} {sys.executable}"
    with lab(tmp_path) as made:
        made.start_worker("a", device("board", tmp_path / "cache-a", python=python))
        run = run_long(made, tmp_path / "two", "--handover", 1, "--patience", 2)
        cut.touch()
        assert run.wait() == 3, run.text
        assert "board@a" in run.sentence
        cut.unlink()
        with DaskCluster(made.address) as crew:
            resume_campaign(tmp_path / "two", cluster=crew)
    assert unlike(tmp_path / "two", one_process["long"]) == []
