from pathlib import Path

import pytest

from edgeflare.campaign.settings.config import load_config
from edgeflare.campaign.settings.templates import STARTER
from edgeflare.devices import load_inventory
from edgeflare.errors import UsageError
from edgeflare.models import InputOptions
from edgeflare.nightly.config import load_nightly
from edgeflare_bench.suite import load_suite

MINIMAL = """
[original]
path = "a.onnx"
[deployed]
path = "models/b.tflite"
[seeds]
path = "~/pictures"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "campaign.toml"
    path.write_text(text)
    return path


def test_relative_paths_start_at_the_files_folder(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, MINIMAL))
    assert config.original.path == tmp_path / "a.onnx"
    assert config.deployed.path == tmp_path / "models" / "b.tflite"
    assert config.seeds.path == Path("~/pictures").expanduser()


def test_a_control_model_is_a_file_beside_the_campaigns(tmp_path: Path) -> None:
    text = "control = true\ncontrol_model = 'float.tflite'\n" + MINIMAL
    assert load_config(write(tmp_path, text)).control_model == tmp_path / "float.tflite"


def test_settings_are_checked_without_a_look_at_references(tmp_path: Path) -> None:
    text = MINIMAL + "[survey]\nreferences = ['campaign.toml', 'INT8', 'int8:m.onnx', 'int8']\n"
    places = (f"{tmp_path}/campaign.toml", f"{tmp_path}/INT8", f"int8:{tmp_path}/m.onnx")
    assert load_config(write(tmp_path, text)).survey.references == (*places, "int8")


def test_deviations_count_above_a_floor_unless_stated_otherwise(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, MINIMAL)).search.margin_floor == 1e-3
    text = MINIMAL + "[search]\nmargin_floor = 0\n"
    assert load_config(write(tmp_path, text)).search.margin_floor == 0


def test_the_starter_is_valid_with_every_comment_removed(tmp_path: Path) -> None:
    load_config(write(tmp_path, STARTER))
    lines = []
    for line in STARTER.splitlines():
        body = line.removeprefix("# ")
        lines.append(body if line.startswith("# ") and " = " in body else line)
    config = load_config(write(tmp_path, "\n".join(lines)))
    assert config.search.operators == ("gaussian-noise", "median-blur")
    assert config.original.input.std == (0.229, 0.224, 0.225)


def test_the_starter_states_nothing_over_what_the_files_tell(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, STARTER))
    assert (config.original.input, config.deployed.input) == (InputOptions(), InputOptions())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[original", "TOML"),
        ("a = " + "[" * 100_000, "used: .*nested"),
        ("a = 1" + "0" * 5000, "used"),
        ("[original]\npath = 'a.onnx'\n[deployed]\npath = 'b.tflite'", "missing"),
        (MINIMAL + "sise = 3", "setting seeds.sise"),
        ("[orignal]\npath = 'a.onnx'", "orignal; original"),
        (MINIMAL + "limit = 0", "seeds.limit"),
        (MINIMAL + "[original.input]\nscale = 'x'", "original.input.scale"),
        (MINIMAL + "[search]\nconfirmations = 0", "search.confirmations"),
        (MINIMAL + f"[search]\nconfirmations = {10**12}", "search.confirmations must"),
        (MINIMAL + "[search]\ntimeout_s = 1e308", "search.timeout_s must"),
        (MINIMAL + "[fleet]\npatience_s = 1e308", "fleet.patience_s must"),
        (MINIMAL + "[fleet]\nhandover_s = 1e308", "fleet.handover_s must"),
        (MINIMAL + "[search]\nmax_queries = 0\ntimeout_s = 0", "never end"),
        (MINIMAL + "[search]\nmargin_floor = 1", "search.margin_floor"),
        (MINIMAL + "[search]\nmargin_floor = nan", "search.margin_floor"),
        (MINIMAL + "[search]\nmax_host_queries = -1", "search.max_host_queries"),
        ("control_model = 'f.onnx'\n" + MINIMAL, "control_model"),
    ],
)
def test_bad_files_are_explained(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        load_config(write(tmp_path, text))
    assert "campaign.toml" in str(caught.value)


def test_a_missing_file_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="edgeflare init"):
        load_config(tmp_path / "none.toml")


@pytest.mark.parametrize("option", ["device_budget", "candidates"])
def test_what_a_search_may_never_ask_is_refused(tmp_path: Path, option: str) -> None:
    text = MINIMAL + "[search]\nstrategy = 'boundary'\nmax_queries = {}\noptions." + option
    text += " = 30\n"
    for most in (0, 30):
        load_config(write(tmp_path, text.format(most)))
    with pytest.raises(UsageError, match=f"{option}"):
        load_config(write(tmp_path, text.format(29)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'out = "a\\u0000b"', "NUL character"),
        (b'"a\\u0000" = 5', "NUL character"),
        (b"[search]\nseed = 99999999999999999999", "64 bits"),
        (b"seed = " + b"9" * 5000, "5000 digits|more than 64 bits"),
        (b"devices = " + b"[" * 100_000, "nested too"),
        (b"a." * 200 + b"a = 1", "nested too"),
        (b"out = '\xff\xfe'", "utf-8|UTF-8"),
        (b"#" * (1 << 24) + b"#", "16 MiB"),
        (None, "is a folder|no suite|Is a directory"),
    ],
    ids=lambda value: str(value[:30] if value else value),
)
@pytest.mark.parametrize("read", [load_config, load_nightly, load_inventory, load_suite])
def test_what_no_setting_can_be_is_reported_of_every_file(tmp_path, read, data, words) -> None:
    path = tmp_path / "file.toml"
    path.mkdir() if data is None else path.write_bytes(data)
    with pytest.raises(UsageError, match=words) as caught:
        read(str(path) if read is load_suite else path)  # type: ignore[arg-type]
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_path_of_somebody_who_is_not_here_stays_as_it_is(tmp_path: Path) -> None:
    text = MINIMAL.replace("~/pictures", "~no-such-user/pictures")
    assert load_config(write(tmp_path, text)).seeds.path == tmp_path / "~no-such-user/pictures"
