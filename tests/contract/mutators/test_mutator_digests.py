"""Bits that must not change: the replay of every recorded mutation rests on them."""

import hashlib
import os
import subprocess
import sys
from typing import Any

import numpy as np

from edgeflare_mutators import Sample, SampleSpec

DIGESTS = """
import hashlib, sys
import numpy as np
from edgeflare_mutators import AverageBlur, GaussianBlur, MedianBlur, SampleSpec, common_corruptions
image = np.frombuffer(sys.stdin.buffer.read(), np.uint8).reshape(61, 67, 3)
steps = [(blur(), {"kernel": kernel}) for blur in (AverageBlur, GaussianBlur, MedianBlur) for kernel in (3, 5, 7)]
for corruption in common_corruptions().values():
    drawn = corruption.draw(np.random.default_rng(3), SampleSpec.of(image))
    steps += [(corruption, corruption.graded(drawn, strength)) for strength in (0.3, 0.7, 1.0)]
for operator, params in steps:
    print(hashlib.sha256(operator.apply(image, params).tobytes()).hexdigest())
"""


def test_draws_and_bits_are_the_pinned_ones(row: Any, pattern: Sample, spec: SampleSpec) -> None:
    operator = row.operator
    drawn = operator.draw(np.random.Generator(np.random.PCG64(1)), spec)
    assert drawn == row.drawn, (
        f"{operator.name} draws other parameters than before from the same generator (numpy "
        f"{np.__version__}): campaigns no longer repeat; say so in CHANGELOG.md and pin these anew"
    )
    digest = hashlib.sha256(operator.apply(pattern, drawn).tobytes()).hexdigest()
    assert row.digest in (None, digest), (
        f"{operator.name} gives other bits than before for the same parameters (numpy "
        f"{np.__version__}, OpenCV or audiomentations): recorded mutations no longer replay exactly; say so in "
        "CHANGELOG.md and pin these anew"
    )


def test_blurs_and_corruptions_give_the_same_bits_without_the_cpus_extensions() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (61, 67, 3), dtype=np.uint8)
    plain = {
        **os.environ,
        "OPENCV_CPU_DISABLE": "AVX512_SKX,AVX2,AVX,FP16,SSE4_2,SSE4_1,NEON_DOTPROD,NEON_FP16",
        "OPENCV_IPP": "disabled",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4,X86_V3,AVX512F,AVX2,FMA3",
        "OPENBLAS_CORETYPE": "Nehalem",
        "JSIMD_FORCENONE": "1",
    }
    outputs = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS], input=noise.tobytes(), env=env, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, check=True,
        ).stdout.split()
        for env in (dict(os.environ), plain)
    ]  # fmt: skip
    assert len(set(outputs[0])) == 9 + 63
    assert outputs[0] == outputs[1]
