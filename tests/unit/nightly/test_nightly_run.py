"""How a night goes on, and ends, whatever becomes of its runs."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from nights import add_night, red, run_of
from shown_numbers import numbers

from edgeflare.campaign import BatchProgress, batch
from edgeflare.errors import (
    DiskFullError,
    ModelError,
    StoreError,
    UnreachableError,
    UsageError,
)
from edgeflare.nightly import (
    KeepConfig,
    NightlyConfig,
    NightlyModel,
    NightRun,
    accept_night,
    run,
    run_nightly,
)
from edgeflare.nightly.history import History
from edgeflare.store import CampaignLock


@pytest.fixture
def config(tmp_path: Path) -> NightlyConfig:
    return NightlyConfig.model_validate(
        {
            "history": tmp_path / "history",
            "devices": ["local", "pi4"],
            "inventory": tmp_path / "devices.toml",
            "models": [
                {
                    "name": name,
                    "original": {"path": tmp_path / "o.onnx"},
                    "deployed": {"path": tmp_path / "d.onnx"},
                    "seeds": {"path": tmp_path},
                }
                for name in ("int8", "big")
            ],
        }
    )


@pytest.fixture(autouse=True)
def model_files(tmp_path: Path) -> None:
    for name in ("o.onnx", "d.onnx"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "devices.toml").write_text('[devices.pi4]\nhost = "pi4"\n')


def clock() -> datetime:
    return datetime(2026, 3, 1, 2, 0, tzinfo=timezone.utc)


def campaigns_that(monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, BaseException]) -> None:
    """Let every campaign end with the error of its device."""

    def run_campaign(config: Any, **_: Any) -> None:
        raise outcomes[config.devices[0]]

    monkeypatch.setattr(batch, "run_campaign", run_campaign)


def test_what_goes_wrong_in_one_run_is_reported_there_and_hides_no_other(
    config: NightlyConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = {"local": ModelError("d.onnx is no model"), "pi4": UnreachableError("pi4 is off")}
    campaigns_that(monkeypatch, outcomes)
    told: list[BatchProgress] = []
    night = run_nightly(config, clock=clock, progress=told.append)
    assert [(run.model, run.device, run.state, run.words) for run in night.runs] == [
        ("int8", "local", "failed", ("d.onnx is no model",)),
        ("int8", "pi4", "away", ("pi4 is off",)),
        ("big", "local", "failed", ("d.onnx is no model",)),
        ("big", "pi4", "away", ("pi4 is off",)),
    ]
    assert (night.state, night.exit_code, night.stamp) == ("finished", 3, "20260301T020000Z")
    assert [report.ended for report in told if report.ended] == ["failed", "away", "failed", "away"]
    log = (night.folder / "log.txt").read_text()
    assert "int8 on pi4" in log
    assert (config.history / "index.html").is_file()
    assert (night.folder / "junit.xml").is_file()


def test_a_fault_of_our_own_is_one_runs_affair_and_its_traceback_is_in_the_log(
    config: NightlyConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaigns_that(monkeypatch, {"local": ZeroDivisionError("oh"), "pi4": UnreachableError("off")})
    night = run_nightly(config, models=["big"], clock=clock)
    assert [run.state for run in night.runs] == ["failed", "away"]
    assert "ZeroDivisionError: oh" in night.runs[0].words[0]
    assert "Traceback" in (night.folder / "log.txt").read_text()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DiskFullError("no space is left")])
def test_an_interrupted_night_keeps_what_is_finished_and_says_so(
    config: NightlyConfig, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    campaigns_that(monkeypatch, {"local": ModelError("no model"), "pi4": error})
    words = "run the night again" if isinstance(error, DiskFullError) else None
    with pytest.raises(type(error), match=words):
        run_nightly(config, clock=clock)
    (night,) = History(config.history).nights()
    assert (night.state, [run.name for run in night.runs]) == ("interrupted", ["int8 on local"])
    assert "3 of 4" in (config.history / "index.html").read_text()
    assert not CampaignLock.is_held(config.history)


def test_two_nights_at_once_are_refused(config: NightlyConfig) -> None:
    config.history.mkdir()
    with CampaignLock(config.history), pytest.raises(StoreError, match="being run"):
        run_nightly(config, clock=clock)


@pytest.mark.parametrize(
    ("names", "words"),
    [({"models": ["int9"]}, "called 'int9'"), ({"devices": ["pi5"]}, "called 'pi5'")],
)
def test_an_unknown_name_is_reported_before_anything_is_made(config, names, words) -> None:
    for function in (run_nightly, accept_night):
        with pytest.raises(UsageError, match=words):
            function(config, clock=clock, **names)
    assert not config.history.exists()


def test_nothing_can_be_accepted_where_all_is_green_or_was_never_searched(config) -> None:
    with pytest.raises(UsageError, match="no history"):
        accept_night(config)
    history = History(config.history)
    away = run_of("int8", "pi4", "away")
    add_night(history, 0, run_of("int8", "local"), away, campaigns=True)
    with pytest.raises(UsageError, match="nothing to"):
        accept_night(config)


def test_only_what_is_named_and_red_is_accepted(config, monkeypatch) -> None:
    learnt = []
    monkeypatch.setattr(
        "edgeflare.nightly.run.update_corpus",
        lambda history, night, run, on_notice: learnt.append(run.name),
    )
    history = History(config.history)
    bad = [run_of(model, "pi4", "regression", **red()) for model in ("int8", "big")]
    add_night(history, 0, *bad, run_of("int8", "local"), campaigns=True)
    add_night(history, 1, run_of("int8", "pi4", "away"))
    (line,) = accept_night(config, models=["int8"], clock=lambda: clock() + timedelta(1))
    assert numbers(line) == "8 4 20260301 020000"
    assert learnt == ["int8 on pi4"]
    first, second = history.nights()
    assert [run.accepted for run in first.runs] == [True, False, False]
    assert (first.exit_code, second.exit_code) == (1, 3)
    assert "new baseline" in (first.folder / "log.txt").read_text()


@pytest.mark.parametrize("kind", [UsageError, StoreError])
def test_a_corpus_that_can_not_take_a_green_run_fails_that_run(config, monkeypatch, kind) -> None:
    def refuse(_: object, __: object, green: NightRun, ___: object) -> None:
        if green.model == "int8":
            raise kind("the inputs are 28 x 28, the corpus' are 32 x 32")

    monkeypatch.setattr(
        run._NightRunner,
        "_run_on_device",
        lambda _, model, device, report: run_of(model.name, device),
    )
    monkeypatch.setattr(run, "update_corpus", refuse)
    night = run_nightly(config, devices=["pi4"], clock=clock)
    assert [run.state for run in night.runs] == ["failed", "green"]
    assert "32 x 32" in night.runs[0].words[0]


def test_what_can_not_be_removed_hides_no_result(config, monkeypatch) -> None:
    def refuse(*_: object) -> int:
        raise StoreError("the folder is somebody else's")

    monkeypatch.setattr(
        run._NightRunner,
        "_run_on_device",
        lambda _, model, device, report: run_of(model.name, device),
    )
    monkeypatch.setattr(run, "update_corpus", lambda *_: None)
    monkeypatch.setattr(run, "prune_history", refuse)
    night = run_nightly(config, clock=clock)
    assert (night.state, night.exit_code) == ("finished", 0)
    assert "somebody else's" in (night.folder / "log.txt").read_text()
    assert (config.history / "index.html").is_file()


def test_a_full_disk_is_freed_by_what_is_to_be_kept_before_a_night_begins(
    config: NightlyConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(config.history)
    for number in range(2):
        add_night(history, number, run_of("int8", "pi4"), campaigns=True)

    def full(*_: object) -> None:
        raise DiskFullError("no space is left")

    monkeypatch.setattr(History, "begin", full)
    less = config.model_copy(update={"keep": KeepConfig(nights=1)})
    with pytest.raises(DiskFullError, match=r"lower keep\.mb"):
        run_nightly(less, clock=clock)
    older, newer = history.nights()
    assert not older.campaign(older.runs[0]).exists()
    assert newer.campaign(newer.runs[0]).exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"devices": ["local", "pj4"]}, "no device is called 'pj4' (did you mean 'pi4'?)"),
        ({"inventory": "gone.toml"}, "there is no device inventory at "),
        ({"search": {"strategy": "best"}}, "there is no strategy 'best'"),
        (
            {"limits": {"new_pairs": False, "baseline": "gone"}},
            "limits.baseline: there is no folder",
        ),
        ({"original": {"path": "gone.onnx"}}, "there is no model file "),
        ({"deployed": {"path": "."}}, "is a folder; name the model file in it"),
        ({"seeds": {"path": "gone"}}, "there are no seeds at "),
        ({"seeds": {"path": ".", "labels": "gone.txt"}}, "gone.txt"),
        ({"campaign": "gone.toml"}, "gone.toml; `edgeflare init` writes one"),
        ({"campaign": "devices.toml"}, "devices.toml: original is missing"),
    ],
)
def test_what_is_wrong_with_the_configuration_is_reported_and_no_night_begins(
    config: NightlyConfig,
    wrong: dict[str, Any],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    model = config.models[1].model_dump(exclude_unset=True)
    if "campaign" in wrong:
        model = {"name": "big", **wrong}
    elif wrong.keys() & model.keys():
        model.update(wrong)
    else:
        config = NightlyConfig.model_validate({**config.model_dump(exclude_unset=True), **wrong})
    models = (config.models[0], NightlyModel.model_validate(model))
    with pytest.raises(UsageError) as caught:
        run_nightly(config.model_copy(update={"models": models}), clock=clock)
    assert words in str(caught.value)
    assert str(caught.value).count(words) == 1
    assert not config.history.exists()


def test_all_mistakes_are_reported_at_once(config: NightlyConfig, tmp_path: Path) -> None:
    (tmp_path / "d.onnx").unlink()
    (tmp_path / "devices.toml").unlink()
    with pytest.raises(UsageError) as caught:
        run_nightly(config, clock=clock)
    assert f"model file {tmp_path / 'd.onnx'}" in str(caught.value)


def test_a_corpus_is_sent_again_as_that_device_saw_it_last(config, monkeypatch) -> None:
    asked = []

    def run_replay(*_: object, target: str, **__: object) -> None:
        asked.append(target)
        raise UnreachableError("pi4 is off")

    monkeypatch.setattr(run, "_has_entries", lambda _: True)
    monkeypatch.setattr(batch, "run_replay", run_replay)
    run_nightly(config, devices=["local"], clock=clock)
    assert asked == ["int8/local", "big/local"]


def test_an_error_after_a_signal_is_the_interruption_and_no_failed_run(config, monkeypatch) -> None:
    campaigns_that(monkeypatch, {"local": ModelError("torn by the signal")})
    with pytest.raises(KeyboardInterrupt):
        run_nightly(config, clock=clock, stopped=lambda: True)
    (night,) = History(config.history).nights()
    assert (night.state, night.runs) == ("interrupted", ())
