"""A wrong preprocessing of models that answer with maps, embeddings or vectors is found before the search."""

from typing import Any

import pytest
from command import edgeflare
from value_models import photographs, value_pair


@pytest.mark.parametrize(
    ("kind", "stated"),
    [
        ("first", ("--task", "dense", "--tolerance", 0.05)),
        pytest.param(
            "vector", ("--task", "embedding", "--tolerance", 0.005), marks=pytest.mark.extended
        ),
        pytest.param(
            "vector", ("--task", "vector", "--tolerance", 0.3), marks=pytest.mark.extended
        ),
    ],
)
def test_another_colour_order_is_refused_and_the_right_one_is_not(tmp_path, kind, stated) -> None:
    models = value_pair(tmp_path, kind)
    seeds = photographs(tmp_path / "seeds.npz", 24)

    def ran(color: str) -> Any:
        return edgeflare(
            *("run", "--original", models[0], "--deployed", models[1], "--seeds", seeds, *stated),
            *("--deployed-input", f"color={color}", "--strategy", "none", "--no-survey"),
            home=tmp_path,
        )

    assert ran("RGB").code == 0
    refused = ran("BGR")
    assert refused.code == 2
    assert "original comes closer" in refused.sentence
