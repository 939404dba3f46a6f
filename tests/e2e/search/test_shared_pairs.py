"""Real model pairs: found, told where the preprocessing is wrong, ties never counted."""

from pathlib import Path

import pytest
from command import Ran, edgeflare, must_run

from edgeflare.store import Store
from edgeflare.triage.cause import Triage
from edgeflare.types import Decision, Status

pytestmark = pytest.mark.shared_data

CIFAR_MEAN = "mean=125.307,122.95,113.865"
CIFAR_STD = "std=62.9932,62.0887,66.7048"
PAIRS = {
    "lenet1": ("mnist_test_0_499.npz", ["scale=1/255"]),
    "lenet5": ("mnist_test_0_499.npz", ["scale=1/255"]),
    "resnet20": ("cifar10_test_500_jpeg.npz", [CIFAR_MEAN, CIFAR_STD]),
}


def run(home: Path, data: Path, name: str, *more: object) -> Ran:
    archive, inputs = PAIRS[name]
    models = data / "models" / "diffchaser"
    flags = [word for entry in inputs for word in ("--input", entry)]
    return edgeflare(
        "run", "--original", models / f"{name}.onnx", "--deployed", models / f"{name}.quant.tflite",
        "--seeds", data / "images" / archive, *flags, "--out", "campaign", "--json", "--no-survey",
        *more, home=home,
    )  # fmt: skip


@pytest.mark.extended
@pytest.mark.parametrize("name", PAIRS)
def test_most_seeds_of_a_published_pair_lead_to_a_trigger(tmp_path, shared_data, name) -> None:
    ran = run(tmp_path, shared_data, name, "--limit", 12)
    assert ran.code == 0, ran.err
    assert ran.json["found"] >= 0.75 * ran.json["searched"]
    assert ran.json["queries_found"]["mean"] >= 1


@pytest.mark.parametrize(
    "side", ["--original-input", pytest.param("--deployed-input", marks=pytest.mark.extended)]
)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("resnet20", ["color=BGR"]),
        pytest.param("resnet20", ["mean=0", "std=1"], marks=pytest.mark.slow),
        pytest.param("resnet20", ["mean=0", "std=255"], marks=pytest.mark.slow),
        ("lenet1", ["scale=1"]),
    ],
    ids=["swapped colours", "missing mean and std", "other scaling", "lenet1 raw"],
)
def test_wrong_preprocessing_of_one_model_is_told_and_ends_with_2(
    tmp_path: Path, shared_data: Path, side: str, name: str, wrong: list[str]
) -> None:
    flags = [word for entry in wrong for word in (side, entry)]
    ran = run(tmp_path, shared_data, name, "--limit", 50, "--max-queries", 1, *flags)
    assert ran.code == 2, ran.out
    with Store.open(tmp_path / "campaign") as store:
        found = store.result("triage", Triage)
    assert found is not None
    assert (found.causes[0].kind, found.causes[0].proof) == ("preprocessing", "corrected")


@pytest.mark.slow  # two minutes of searches on two cores
def test_top_1_ties_of_an_int8_model_are_no_deviations(tmp_path: Path, shared_data: Path) -> None:
    models = shared_data / "models" / "mlperf-tiny"
    ran = must_run(
        "run",
        "--original",
        models / "cifar10_resnet8_float.tflite",
        "--deployed",
        models / "cifar10_resnet8_int8.tflite",
        "--seeds",
        shared_data / "images" / "cifar10_test_500_jpeg.npz",
        "--max-queries",
        1,
        "--out",
        "campaign",
        "--json",
        home=tmp_path,
    )
    assert 8 <= ran.json["ties"] <= 16
    with Store.open(tmp_path / "campaign") as store:
        tied = {
            seed.id
            for seed in store.seeds()
            if seed.outputs is not None and seed.outputs.decision is Decision.TIE
        }
        statuses = {one.status for one in store.outcomes() if one.seed_id in tied}
    assert len(tied) == ran.json["ties"]
    assert Status.SEED_DEVIATES not in statuses
