"""Tests of a compressed model, as a user of EdgeFlare writes them."""

import pytest

import edgeflare

PAIR = ("original.onnx", "deployed.tflite", {"path": "seeds.npz", "limit": 2})


def test_the_models_agree_on_every_digit(edgeflare_device: str) -> None:
    edgeflare.assert_agrees(*PAIR)


def test_no_trigger_is_found(edgeflare_device: str) -> None:
    edgeflare.assert_agrees(*PAIR, limits={"max_deviation_rate": 0.0})


@pytest.mark.edgeflare(device=["unplugged", "board"])
def test_no_trigger_is_severe(edgeflare_device: str) -> None:
    edgeflare.assert_agrees(*PAIR, limits="campaign.toml")


def test_a_device_by_name() -> None:
    edgeflare.assert_agrees(*PAIR, device="unplugged")


@pytest.mark.edgeflare
def test_a_search_of_my_own() -> None:
    edgeflare.search(*PAIR, device="unplugged")


def test_of_something_else() -> None:
    assert edgeflare.__version__
