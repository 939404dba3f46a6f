"""``edgeflare export --mlflow`` into a real database of MLflow, read back by MLflow's own client."""

import shutil
import socket
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Ran, edgeflare, must_run
from shown_numbers import numbers
from stores import store_of

from edgeflare import run_campaign
from edgeflare.campaign import demo_config
from edgeflare.errors import TrackingError
from edgeflare.reports import log_to_mlflow
from edgeflare.store import OutcomeRecord, SeedInput, Store
from edgeflare.types import Status

pytestmark = [
    pytest.mark.extended,  # MLflow takes seconds to import, and as many to make a database
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the demo's finished campaign "digits" and, once it is asked for, MLflow's database."""
    made = tmp_path_factory.mktemp("mlflow")
    run_campaign(demo_config(seeds=3, out=made / "digits"))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.chdir(made)  # beside a database MLflow keeps artefacts in the working folder
        for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
            patch.delenv(name, raising=False)
        import mlflow  # noqa: F401 - its own warnings are not ours

        yield made


@pytest.fixture(scope="module")
def database(home: Path) -> str:
    return f"sqlite:///{home}/mlflow.db"


@pytest.fixture(scope="module")
def client(database: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=database)


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished campaign of one seed."""
    monkeypatch.chdir(tmp_path)
    end, config = {"seed": 0, "status": Status.SEED_DEVIATES}, {"search": {"strategy": "boundary"}}
    with store_of(tmp_path / "small", [end], seeds=1, config=config, finished=True) as store:
        store.complete_seeds([], [])
    return tmp_path / "small"


def logged(home: Path, database: str, *arguments: object, campaign: str = "digits") -> Ran:
    return edgeflare(
        "export", campaign, *arguments, "--mlflow", "--mlflow-uri", database, home=home
    )


def artifacts(client: Any, run: str, folder: str | None = None) -> set[str]:
    found = client.list_artifacts(run, folder)
    files = {one.path for one in found if not one.is_dir}
    return files.union(*(artifacts(client, run, one.path) for one in found if one.is_dir))


def test_a_campaign_is_one_run_with_its_numbers_settings_and_files(home, database, client) -> None:
    ran = logged(home, database, "--json")
    assert ran.code == 0, ran.err
    told = ran.json["mlflow"]
    assert set(ran.json) == {"mlflow"}
    assert (told["experiment"], told["tracking_uri"]) == ("edgeflare", database)
    assert told["is_new"] is True
    run = client.get_run(told["run_id"])
    shown = edgeflare("show", "digits", "--json", home=home).json
    metrics = run.data.metrics
    assert len(metrics) == told["metrics"]
    assert (metrics["found"], metrics["seeds"]) == (shown["found"], 3)
    assert metrics["success_rate"] == shown["success_rate"]
    assert metrics["queries_found.median"] == shown["queries_found"]["median"]
    assert metrics["by_status.found"] == shown["by_status"]["found"]
    assert metrics["l2"] == pytest.approx(shown["l2"])
    assert metrics["limits_crossed"] == 0
    params = run.data.params
    assert len(params) == told["params"]
    for which in ("original", "deployed"):
        assert params[f"{which}.name"] == shown["models"][which]["name"]
        assert params[f"{which}.sha256"] == shown["models"][which]["sha256"]
    assert (params["search.strategy"], params["devices"]) == ("boundary", "local")
    assert params["seeds"] == "seeds.npz"
    tags = run.data.tags
    assert tags["edgeflare.campaign"] == shown["campaign"]
    assert "3 seeds (100" in tags["edgeflare.verdict"]
    assert tags["edgeflare.limits"] == "none"
    assert (run.info.run_name, run.info.status) == ("digits", "FINISHED")
    assert run.info.start_time < run.info.end_time
    files = artifacts(client, told["run_id"])
    assert len(files) == told["artifacts"]
    assert {"report.html", "campaign.json", "triggers.jsonl"} <= files
    assert sum(name.endswith("-panel.png") for name in files) == 3
    page = Path(client.download_artifacts(told["run_id"], "report.html", str(home)))
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_second_export_brings_the_same_run_up_to_date(finished, database, client) -> None:
    first = log_to_mlflow(finished, uri=database, experiment="twice")
    again = log_to_mlflow(finished, uri=database, experiment="twice")
    assert (first.is_new, again.is_new) == (True, False)
    with Store.open(finished) as store:
        store.add_seeds([SeedInput("1.png", np.ones((4, 4, 1), np.uint8))])
        store.add_outcome(OutcomeRecord("1.png", Status.SEED_DEVIATES, 1))
    later = log_to_mlflow(finished, uri=database, experiment="twice")
    assert later.run_id == again.run_id == first.run_id
    experiment = client.get_experiment_by_name("twice")
    assert len(client.search_runs([experiment.experiment_id])) == 1
    counts = client.get_metric_history(first.run_id, "finished")
    assert [one.value for one in counts] == [1, 2]
    assert [one.value for one in client.get_metric_history(first.run_id, "seeds")] == [1, 2]
    run = client.get_run(first.run_id)
    assert run.data.metrics["finished"] == 2
    assert "2 of 2" in run.data.tags["edgeflare.verdict"]
    lines = client.download_artifacts(first.run_id, "triggers.jsonl", str(finished.parent))
    assert len(Path(lines).read_text().splitlines()) == 2


def test_a_run_that_was_cut_short_is_completed(finished, database, client, monkeypatch) -> None:
    def lost(*arguments: Any) -> None:
        raise ConnectionError("the connection was\nreset")

    with monkeypatch.context() as patch:
        patch.setattr("mlflow.MlflowClient.log_artifacts", lost)
        with pytest.raises(TrackingError, match="reset; repair"):
            log_to_mlflow(finished, uri=database, experiment="cut")
    experiment = client.get_experiment_by_name("cut").experiment_id
    (cut,) = client.search_runs([experiment])
    assert cut.info.status == "RUNNING"
    log_to_mlflow(finished, uri=database, experiment="cut")
    (run,) = client.search_runs([experiment])
    assert (run.info.run_id, run.info.status) == (cut.info.run_id, "FINISHED")
    assert "report.html" in artifacts(client, run.info.run_id)


def test_a_deleted_run_is_logged_anew(finished: Path, database: str, client: Any) -> None:
    first = log_to_mlflow(finished, uri=database, experiment="gone")
    client.delete_run(first.run_id)
    again = log_to_mlflow(finished, uri=database, experiment="gone")
    assert again.is_new
    assert again.run_id != first.run_id


def test_other_settings_are_not_mixed_into_a_run(finished: Path, database: str) -> None:
    first = log_to_mlflow(finished, uri=database, experiment="settings")
    with Store.open(finished) as store:
        models = store.models
        store.set_models(models["original"], {**models["deployed"], "sha256": "cc"})
    ran = logged(
        finished.parent, database, "--mlflow-experiment", "settings", campaign=finished.name
    )
    assert ran.code == 2
    assert f"the run {first.run_id} on " in ran.sentence
    assert "another deployed.sha256 (bb" in ran.sentence


def test_a_deleted_experiment_is_named(finished: Path, database: str, client: Any) -> None:
    client.delete_experiment(client.create_experiment("old"))
    ran = logged(finished.parent, database, "--mlflow-experiment", "old", campaign=finished.name)
    assert ran.code == 2
    assert "experiment 'old'" in ran.sentence


def test_experiment_and_server_may_come_from_the_environment_and_files_go_along(
    finished: Path, database: str, client: Any
) -> None:
    home = finished.parent
    said = {"MLFLOW_TRACKING_URI": database, "MLFLOW_EXPERIMENT_NAME": "of the shell"}
    ran = must_run("export", finished.name, "out", "--mlflow", home=home, extra=said)
    files, run = ran.out.splitlines()
    assert numbers(files) == "1 1 6"
    assert "shell on sqlite:///" in run
    assert (home / "out" / "triggers.jsonl").is_file()
    assert client.get_experiment_by_name("of the shell") is not None


@pytest.mark.parametrize("answer", [None, b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_a_server_that_is_away_is_named_at_once_without_its_password(finished, answer) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        if answer is None:
            server.close()
        else:
            threading.Thread(target=_answer_once, args=(server, answer), daemon=True).start()
        ran = logged(finished.parent, f"http://me:secret@127.0.0.1:{port}", campaign=finished.name)
    assert (ran.code, ran.out) == (3, "")
    assert f"tracking server http://127.0.0.1:{port}" in ran.sentence
    assert "name another" in ran.sentence
    assert "secret" not in ran.err


def _answer_once(server: socket.socket, answer: bytes) -> None:
    with closing(server.accept()[0]) as connection:
        connection.recv(4096)
        connection.sendall(answer)


class _OnlyHealthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 500)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


def test_a_healthy_server_that_refuses_is_named_without_its_password(
    finished: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with HTTPServer(("127.0.0.1", 0), _OnlyHealthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"127.0.0.1:{server.server_port}"
        uri = f"http://me:secret@{place}"
        with pytest.raises(TrackingError) as refused:
            log_to_mlflow(finished, uri=uri)
        server.shutdown()
    assert f"logged on http://{place}" in str(refused.value)
    assert f"request to http://{place}/api/" in str(refused.value)
    assert "secret" not in "".join(traceback.format_exception(refused.value, chain=True))


def test_a_store_that_mlflow_does_not_take_is_one_sentence(finished: Path) -> None:
    ran = logged(finished.parent, "nonsense://there", campaign=finished.name)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.count("\n") == 1
    assert "logged on nonsense://there" in ran.err


def test_an_unfinished_campaign_is_not_logged(home: Path, database: str, tmp_path: Path) -> None:
    shutil.copytree(home / "digits", tmp_path / "digits")
    with Store.open(tmp_path / "digits") as store:
        store.state.finished = None
    (tmp_path / "digits" / "live.json").unlink()
    ran = logged(tmp_path, database)
    assert (ran.code, ran.out) == (2, "")
    assert "(3 of 3" in ran.sentence
    assert f"edgeflare resume {tmp_path / 'digits'}" in ran.sentence


def test_no_run_is_made_where_the_files_can_not_be_written(finished, database, client) -> None:
    (finished.parent / "mine").mkdir()
    (finished.parent / "mine" / "notes.txt").touch()
    flags = ("--mlflow-experiment", "refused")
    ran = logged(finished.parent, database, "mine", *flags, campaign=finished.name)
    assert (ran.code, ran.out) == (2, "")
    assert client.get_experiment_by_name("refused") is None
