"""A triage decides and stores the same, to the byte, as numpy, BLAS and the C library compute on other CPUs.

The models' own answers are those of this CPU in both: only what is computed with them is limited.
"""

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from pydantic import TypeAdapter
from triage_pairs import SPEC, attribute, changed, ending, images, network, pair_of

from edgeflare.models.quantized import Recipe, make_quantized
from edgeflare.triage.cause import Triage
from edgeflare.triage.run import triage
from edgeflare_agent.preprocess import prepare

ROOT = Path(__file__).resolve().parents[3]
LIMITED = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4,X86_V3,AVX512F,AVX2,FMA3",
    "OPENBLAS_CORETYPE": "Nehalem",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
}
FAULTS = {
    "pads": attribute("conv2", "pads", [0, 0, 2, 2]),
    "colours": changed("k1", lambda kernel: kernel[:, ::-1]),
    "softmax": ending("Softmax", axis=-1),
}


def stored(folder: Path) -> bytes:
    """Return what is stored of the triage of each fault and of a healthy int8 copy."""
    pairs = [pair_of(folder / "float.onnx", folder / f"{name}.onnx") for name in (*FAULTS, "int8")]
    pairs.append(
        pair_of(folder / "float.onnx", folder / "float.onnx", spec=SPEC._replace(color="BGR"))
    )
    return b"\n".join(TypeAdapter(Triage).dump_json(triage(pair)) for pair in pairs)


@pytest.mark.extended
def test_the_same_bytes_without_the_cpus_extensions(tmp_path: Path) -> None:
    for name, fault in {"float": lambda _: None, **FAULTS}.items():
        model = network()
        fault(model)
        onnx.save(model, tmp_path / f"{name}.onnx")
    inputs = [prepare(image, SPEC) for image in images()]
    recipe = Recipe("int8", per_channel=True)
    made = make_quantized(tmp_path / "float.onnx", [recipe], inputs, tmp_path, lambda *_: None)
    made["int8"].rename(tmp_path / "int8.onnx")
    code = (
        "import sys, pathlib; sys.path[:0] = sys.argv[2:]; import test_portable_bits as here; "
        "sys.stdout.buffer.write(here.stored(pathlib.Path(sys.argv[1])))"
    )
    paths = [Path(__file__).parent, ROOT / "tests" / "helpers"]
    command = [sys.executable, "-W", "ignore", "-c", code, tmp_path, *paths]
    limited = subprocess.run(
        command, check=True, env={**os.environ, **LIMITED}, capture_output=True
    )
    assert limited.stdout.decode().splitlines() == stored(tmp_path).decode().splitlines()
