"""What the control of a campaign is run from."""

from pathlib import Path
from typing import Any

import pytest
from small_models import dense_onnx

from edgeflare.campaign.control import control_config
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.statistics import rounded_up


def control(**more: Any) -> CampaignConfig:
    values = {
        "original": {"path": "/m/a.onnx"},
        "deployed": {"path": "/m/b.tflite"},
        "seeds": {"path": "/s"},
        "control": True,
        **more,
    }
    return control_config(config_from(values, "test"), Path("/c"))


@pytest.mark.parametrize(
    ("file", "stated", "in_control"),
    [
        ("a.onnx", {}, {"graph_optimization": "none"}),
        ("a.onnx", {"threads": 2}, {"threads": 2, "graph_optimization": "none"}),
        ("a.onnx", {"graph_optimization": "none"}, {"graph_optimization": "all"}),
        ("a.tflite", {}, {"delegate": False}),
        ("a.tflite", {"delegate": False}, {"delegate": True}),
        ("a.tflite", {"kernels": "reference"}, {"kernels": "default"}),
    ],
)
def test_the_originals_own_file_is_computed_in_another_order(file, stated, in_control) -> None:
    original = {"path": f"/m/{file}", "options": stated, "output_name": "p"}
    config = control(original=original)
    assert config.original.options == stated
    assert config.deployed.path == config.original.path
    assert config.deployed.options == in_control
    assert config.deployed.output_name == "p"
    assert control(original=original, control_model=f"/m/{file}").deployed == config.deployed


def test_a_copy_takes_the_originals_pixels_in_a_layout_of_its_own() -> None:
    original = {
        "path": "/m/a.onnx",
        "input": {"layout": "CHW", "color": "BGR", "scale": "1/255"},
        "options": {"threads": 2},
        "output": "logits",
    }
    deployed = control(original=original, control_model="/m/copy.tflite").deployed
    assert deployed.path == Path("/m/copy.tflite")
    assert deployed.runtime is None
    assert deployed.options == {}
    assert (deployed.input.layout, deployed.input.color) == (None, "BGR")
    assert deployed.input.scale == "1/255"
    assert (deployed.output, deployed.output_name) == ("logits", None)


@pytest.mark.parametrize(("name", "kept"), [("y", "y"), ("p", None)])
def test_a_copy_has_the_originals_output_where_it_has_one_of_that_name(
    tmp_path: Path, name: str, kept: str | None
) -> None:
    copy = dense_onnx(tmp_path / "copy.onnx", [1, 8, 8, 1])
    original = {"path": "/m/a.onnx", "output_name": name}
    assert control(original=original, control_model=copy).deployed.output_name == kept


def test_only_the_search_is_the_campaigns() -> None:
    search = {"max_queries": 7, "seed": 3, "margin_floor": 0.2}
    config = control(
        search=search,
        devices=["pi", "jetson"],
        python="/usr/bin/python3",
        inventory="/i.toml",
        fleet={"mode": "replicate", "total_queries": 5},
        one_trip=True,
        concurrency=3,
    )
    told = config.search.model_dump()
    assert {name: told[name] for name in search} == search
    assert (config.devices, config.python, config.inventory) == (("local",), None, None)
    assert config.fleet.total_queries is None
    assert config.fleet.mode == "split"
    assert not config.one_trip
    assert not config.control, "a control has none of its own"
    assert config.out == Path("/c/control")


def test_a_margin_is_rounded_to_one_that_is_no_smaller() -> None:
    assert [rounded_up(one) for one in (0.0, 0.00321, 0.0033, 0.0996, 0.0304, 0.9999)] == [
        *(0.0, 0.0033, 0.0033, 0.1, 0.031, 1.0)
    ]
    assert rounded_up(0.1 + 0.2) == 0.31
