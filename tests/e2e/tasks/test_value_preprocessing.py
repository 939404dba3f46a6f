"""A wrong preprocessing of models that answer with maps, embeddings or vectors is told, and the run ends with 2."""

from pathlib import Path
from typing import Any

import pytest
from command import edgeflare
from value_models import photographs, value_onnx


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
def test_another_colour_order_is_told_and_the_right_one_is_not(
    tmp_path: Path, kind: str, stated: tuple[object, ...]
) -> None:
    models = [value_onnx(tmp_path / name, kind) for name in ("original.onnx", "deployed.onnx")]
    seeds = photographs(tmp_path / "seeds.npz", 24)

    def ran(color: str) -> Any:
        return edgeflare(
            *("run", "--original", models[0], "--deployed", models[1], "--seeds", seeds, *stated),
            *("--deployed-input", f"color={color}", "--strategy", "none", "--no-survey"),
            home=tmp_path,
        )

    assert ran("RGB").code == 0
    told = ran("BGR")
    assert told.code == 2
    assert "preprocessing" in told.sentence
