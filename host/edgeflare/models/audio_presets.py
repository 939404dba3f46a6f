"""Front ends of well-known audio models, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

MLPERF_TINY_KWS: Mapping[str, Any] = MappingProxyType(
    {
        "front_end": "mfcc",
        "rate": 16000,
        "samples": 16000,
        "peak": "maximum",
        "window": 480,
        "stride": 320,
        "fft": 512,
        "spectrum": "magnitude",
        "bands": 40,
        "low_hz": 20.0,
        "high_hz": 4000.0,
        "mel_scale": "htk",
        "mel_slopes": "mel",
        "log": "ln",
        "log_offset": 1e-6,
        "coefficients": 10,
        "dct": "tensorflow",
        "axes": "frames-bands",
    }
)
"""The keyword spotting of MLPerf Tiny (mlcommons/tiny, keyword_spotting/get_dataset.py): 49 frames x 10.

Differences: there a clip without a sample above 0 becomes NaN; here it is not divided by its maximum. The
published evaluation truncates the coefficients to int8; here they are rounded, as TFLite's own quantisation does.
"""

WHISPER: Mapping[str, Any] = MappingProxyType(
    {
        "front_end": "log-mel",
        "rate": 16000,
        "samples": 480000,
        "window": 400,
        "stride": 160,
        "fft": 400,
        "centered": True,
        "drop_last": True,
        "spectrum": "power",
        "bands": 80,
        "low_hz": 0.0,
        "high_hz": 8000.0,
        "mel_scale": "slaney",
        "mel_slopes": "hertz",
        "mel_norm": True,
        "log": "log10",
        "log_floor": 1e-10,
        "dynamic_range": 8.0,
        "axes": "bands-frames",
        "mean": (-4.0,),
        "std": (4.0,),
    }
)
"""Whisper's 30 seconds (openai/whisper, audio.py; the models with 80 bands): 80 x 3000 frames."""

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"mlperf-tiny-kws": MLPERF_TINY_KWS, "whisper": WHISPER}
)
"""The options of each preset."""
