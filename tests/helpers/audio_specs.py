"""Front ends of well-known models as the agent is told of them, and clips that are the same bits everywhere."""

import numpy as np
from numpy.typing import NDArray

from edgeflare_agent.audio_spec import AudioSpec, MelSpec

KWS = AudioSpec(
    shape=(1, 49, 10, 1),
    dtype="float32",
    rate=16000,
    samples=16000,
    front_end="mfcc",
    peak="maximum",
    mel=MelSpec(
        *(480, 320, 512, 40, 20.0, 4000.0, "htk", "mel", False, "magnitude", "ln", 1e-6, 0.0),
        coefficients=10,
        dct="tensorflow",
    ),
)
"""MLPerf Tiny's keyword spotting, float."""

KWS_INT8 = KWS._replace(dtype="int8", quantization=(0.5847029089927673, 83))

WHISPER = AudioSpec(
    shape=(1, 80, 3000),
    dtype="float32",
    rate=16000,
    samples=480000,
    front_end="log-mel",
    mel=MelSpec(
        *(400, 160, 400, 80, 0.0, 8000.0, "slaney", "hertz", True, "power", "log10", 0.0, 1e-10),
        dynamic_range=8.0,
        centered=True,
        drop_last=True,
    ),
    axes="bands-frames",
    mean=(-4.0,),
    std=(4.0,),
)

OPEN = AudioSpec(
    shape=(1, None, 20),
    dtype="float32",
    rate=8000,
    front_end="log-mel",
    mel=MelSpec(
        *(200, 80, 256, 20, 50.0, 3800.0, "slaney", "hertz", False, "power", "ln", 0.0, 1e-12)
    ),
)
"""Log-mel bands of a clip of any length."""


def clip(samples: int, seed: int = 0) -> NDArray[np.float32]:
    """Return a clip that swells and fades, float32 [samples] in [-1, 1]: whole numbers over 2**15."""
    random = np.random.default_rng(seed)
    whole = random.integers(-(2**15), 2**15, samples)
    loudness = 2 ** (np.arange(samples) // 1000 % 12)
    return (whole // loudness / 2**15).astype(np.float32)
