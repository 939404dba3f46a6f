"""The flags that say what a deviation is."""

import pytest
from typer.testing import CliRunner

from edgeflare.cli.app import app
from edgeflare.cli.campaigns import config_of
from edgeflare.cli.options import typed

PAIR = {"original": "a.onnx", "deployed": "b.onnx", "seeds": "s"}


def test_they_state_the_oracle() -> None:
    stated = {**PAIR, "oracle": "tolerance", "tolerance": 0.25, "strategy": "dflare"}
    search = config_of(None, typed(stated)).search
    assert (search.oracle, search.tolerance, search.margin_floor) == ("tolerance", 0.25, 0)


def test_left_out_they_say_nothing() -> None:
    assert "search" not in typed(PAIR).values
    assert config_of(None, typed(PAIR)).search.oracle == "auto"


@pytest.mark.parametrize("value", ["0", "nan"])
def test_a_tolerance_that_is_none_is_refused(value: str) -> None:
    ran = CliRunner().invoke(
        app,
        ["run", "--oracle", "tolerance", "--tolerance", value],
        env={"COLUMNS": "200", "NO_COLOR": "1"},
    )
    assert ran.exit_code == 2
    assert "above 0" in ran.output
