"""The front ends beside the same steps with numpy's own transform and logarithm, and their bits."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from audio_specs import KWS, KWS_INT8, OPEN, WHISPER, clip
from command import ROOT
from numpy.typing import NDArray

import edgeflare_agent
from edgeflare_agent.audio_spec import AudioSpec, MelSpec
from edgeflare_agent.errors import RequestError
from edgeflare_agent.front_ends import tables
from edgeflare_agent.front_ends.elementary import natural_log
from edgeflare_agent.preprocess import prepare

assert KWS.mel
ORTHONORMAL = KWS._replace(
    mel=KWS.mel._replace(dct="orthonormal", coefficients=40), shape=(1, 49, 40)
)
ODD = OPEN._replace(
    mel=KWS.mel._replace(fft=601, centered=True, coefficients=None),
    shape=(40, None),
    axes="bands-frames",
)
SMALL = {
    fft: AudioSpec(
        (1, None, 2),
        "float32",
        8000,
        front_end="log-mel",
        mel=MelSpec(fft, 3, fft, 2, 100.0, 4000.0, "htk", "hertz", False, "power", "ln", 1e-3, 0.0),
    )
    for fft in range(4, 10)
}
DIGESTS = {
    "kws": "84016e54cfe0f4f8",
    "kws-int8": "ecbe26333986b635",
    "whisper": "5e671d9cee12efb8",
    "open": "a4ad7c901a51820f",
    "odd": "c3a8f544ac7a4b70",
}


def reference(samples: NDArray[np.float32], spec: AudioSpec) -> NDArray[np.float64]:
    """Return [frames, bands or coefficients] as float64 and numpy's functions give them."""
    mel = spec.mel
    assert mel
    x = samples.astype(np.float64)
    if spec.samples:
        x = np.concatenate([x, np.zeros(spec.samples)])[: spec.samples]
    if spec.peak and x.max() > 0:
        x = x / x.max()
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(mel.window) / mel.window)
    if mel.centered:
        x = np.pad(x, mel.fft // 2, mode="reflect")
        before = (mel.fft - mel.window) // 2
        window = np.pad(window, (before, mel.fft - mel.window - before))
    starts = range(0, len(x) - len(window) + 1, mel.stride)
    spectra = np.abs(
        np.fft.rfft(np.stack([x[n : n + len(window)] * window for n in starts]), mel.fft)
    )
    bands = (spectra**2 if mel.spectrum == "power" else spectra) @ filters(mel, spec.rate)
    bands = np.maximum(bands + mel.log_offset, mel.log_floor)
    values = np.log(bands) if mel.log == "ln" else np.log10(bands)
    values = values[:-1] if mel.drop_last else values
    if mel.dynamic_range:
        values = np.maximum(values, values.max() - mel.dynamic_range)
    if mel.coefficients:
        n = np.arange(mel.bands)
        waves = np.cos(np.pi * np.outer(n, 2 * n + 1) / (2 * mel.bands)) * np.sqrt(2 / mel.bands)
        waves[0] /= np.sqrt(2) if mel.dct == "orthonormal" else 1
        values = values @ waves[: mel.coefficients].T
    return (values - spec.mean[0]) / spec.std[0]


def filters(mel, rate: int) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    step = np.log(6.4) / 27

    def of_hertz(f):  # type: ignore[no-untyped-def]
        if mel.mel_scale == "htk":
            return 2595 * np.log10(1 + f / 700)
        return np.where(f < 1000, f * 3 / 200, 15 + np.log(np.maximum(f, 1) / 1000) / step)

    def to_hertz(m):  # type: ignore[no-untyped-def]
        if mel.mel_scale == "htk":
            return 700 * (10 ** (m / 2595) - 1)
        return np.where(m < 15, m * 200 / 3, 1000 * np.exp((m - 15) * step))

    corners = np.linspace(of_hertz(mel.low_hz), of_hertz(mel.high_hz), mel.bands + 2)
    hertz = to_hertz(corners)
    bins = np.arange(mel.fft // 2 + 1)[:, None] * rate / mel.fft
    bins, corners = (of_hertz(bins), corners) if mel.mel_slopes == "mel" else (bins, hertz)
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    slopes = np.minimum((bins - left) / (middle - left), (right - bins) / (right - middle))
    return np.maximum(slopes, 0) * (2 / (hertz[2:] - hertz[:-2]) if mel.mel_norm else 1)


def digest(values: NDArray[np.generic]) -> str:
    return hashlib.sha256(values.tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("spec", "samples", "near"),
    [
        (KWS, clip(16000), 1e-5),
        (KWS, clip(9000, 1) * np.float32(0.01), 1e-5),
        (KWS, clip(20000, 2), 1e-5),
        (ORTHONORMAL, clip(16000), 1e-5),
        (WHISPER, clip(50000), 3e-7),
        (OPEN, clip(5000), 3e-6),
        (ODD, clip(7000), 1e-5),
        *[(SMALL[fft], clip(300, fft), 1e-4) for fft in range(4, 10)],
    ],
)
def test_values_are_those_of_numpys_own_functions(spec, samples, near) -> None:  # type: ignore[no-untyped-def]
    expected = reference(samples, spec)
    got = prepare(samples, spec)
    assert got.dtype == np.float32
    laid = expected if spec.axes == "frames-bands" else expected.T
    assert (
        got.shape == tuple(len(laid) if n is None else n for n in spec.shape) or None in spec.shape
    )
    np.testing.assert_allclose(got.reshape(laid.shape), laid, rtol=0, atol=near)


@pytest.mark.parametrize("name", ["kws", "kws-int8", "whisper", "open", "odd"])
def test_the_bits_are_those_of_every_other_machine(name) -> None:  # type: ignore[no-untyped-def]
    spec = {"kws": KWS, "kws-int8": KWS_INT8, "whisper": WHISPER, "open": OPEN, "odd": ODD}[name]
    assert digest(prepare(clip(12345, 7), spec)) == DIGESTS[name]


BITS = """
import hashlib, sys
from audio_specs import KWS, WHISPER, clip
from edgeflare_agent.preprocess import prepare
for spec in (KWS, WHISPER):
    print(hashlib.sha256(prepare(clip(12345, 7), spec).tobytes()).hexdigest()[:16])
"""


@pytest.mark.parametrize("core", ["Prescott", "ARMV8"])
def test_the_bits_do_not_depend_on_the_kernels_that_multiply(core) -> None:  # type: ignore[no-untyped-def]
    folders = [Path(edgeflare_agent.__file__).parents[1], ROOT / "tests/helpers"]
    done = subprocess.run(
        [sys.executable, "-c", BITS],
        env={
            **os.environ,
            "OPENBLAS_CORETYPE": core,
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [DIGESTS["kws"], DIGESTS["whisper"]]


def test_a_frame_does_not_depend_on_the_frames_around_it() -> None:
    samples = clip(200 + 80 * 700)
    whole = prepare(samples, OPEN)[0]
    for frame in (0, 255, 256, 300, 700):
        alone = prepare(samples[frame * 80 : frame * 80 + 200], OPEN)[0]
        assert alone.tobytes() == whole[frame : frame + 1].tobytes()


def test_products_are_small_enough_for_one_thread(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    done = []

    def product(first, second, out):  # type: ignore[no-untyped-def]
        done.append(first.shape[-2] * first.shape[-1] * second.shape[-1])
        out[:] = 0

    monkeypatch.setattr(np, "matmul", product)
    prepare(clip(16000), KWS)
    prepare(clip(50000), WHISPER)
    assert len(done) > 8
    assert max(done) <= 2**18


def test_silence_is_finite_and_all_frames_are_alike() -> None:
    silent = np.zeros(100, np.float32)
    assert (prepare(silent, KWS_INT8)[0, :, :, 0] == [-128] + 9 * [83]).all()
    assert np.unique(prepare(silent, WHISPER)) == [(-10 + 4) / 4]


def test_a_short_clip_is_padded_and_a_long_one_cut() -> None:
    samples = clip(20000)
    padded = np.concatenate([samples[:300], np.zeros(15700, np.float32)])
    assert prepare(samples[:300], KWS).tobytes() == prepare(padded, KWS).tobytes()
    assert prepare(samples, KWS).tobytes() == prepare(samples[:16000], KWS).tobytes()


def test_the_peak_is_what_a_clip_is_divided_by() -> None:
    samples = np.array([0.25, -0.5, 0.125], np.float32)
    waveform = AudioSpec((1, 3), "float32", 8000, samples=3)
    for peak, largest in ((None, 1), ("maximum", 0.25), ("magnitude", 0.5)):
        got = prepare(samples, waveform._replace(peak=peak))
        assert (got == samples / largest).all()
    low = -np.abs(samples)
    assert (prepare(low, waveform._replace(peak="maximum")) == low).all()


def test_a_waveform_is_scaled_and_quantized() -> None:
    samples = np.array([0.5, -1, 1, 0], np.float32)
    spec = AudioSpec((1, None, 1), "int16", 8000, scale=(32768.0, 1.0))
    assert prepare(samples, spec).tolist() == [[[16384], [-32768], [32767], [0]]]
    spec = AudioSpec((4,), "int8", 8000, samples=4, quantization=(1 / 128, 3))
    assert prepare(samples, spec).tolist() == [67, -125, 127, 3]


def test_each_band_may_have_its_own_mean() -> None:
    plain = prepare(clip(4000), OPEN)[0]
    mean = tuple(range(20))
    assert prepare(clip(4000), OPEN._replace(mean=mean))[0] == pytest.approx(plain - mean, abs=1e-5)
    turned = OPEN._replace(mean=mean, axes="bands-frames", shape=(20, None))
    assert pytest.approx(plain - mean, abs=1e-5) == prepare(clip(4000), turned).T


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.zeros(8, np.float64), "float64 8"),
        (np.zeros((8, 2), np.float32), "float32 8"),
        (np.zeros((2, 2, 1), np.uint8), "uint8 2"),
        (np.zeros(0, np.float32), "empty"),
        (np.array([0, np.nan], np.float32), "number"),
        (np.array([0, -np.inf], np.float32), "size"),
        (np.array([0, 1.5], np.float32), "1.5 in"),
        (np.zeros(199, np.float32), "199 samples"),
    ],
)
def test_a_bad_clip_is_refused(bad, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=words):
        prepare(bad, OPEN)


def test_a_clip_that_does_not_fill_a_waveform_s_shape_is_refused() -> None:
    with pytest.raises(RequestError, match="don't fill"):
        prepare(clip(7), AudioSpec((1, None, 2), "float32", 8000))


def test_the_logarithm_is_exact_to_the_last_bits() -> None:
    random = np.random.default_rng(3)
    values = np.concatenate(
        [10 ** random.uniform(-30, 30, 5000), random.uniform(0.9, 1.1, 5000), [1.0]]
    )
    expected = np.log(values)
    assert (np.abs(natural_log(values) - expected) <= 1e-15 * np.maximum(1, np.abs(expected))).all()


def test_tables_are_those_of_the_mathematical_functions() -> None:
    for turn in (400, 512, 601):
        angles = 2 * np.pi * np.arange(turn) / turn
        np.testing.assert_allclose(tables.cosines(turn), np.cos(angles), rtol=0, atol=2e-15)
        np.testing.assert_allclose(tables.sines(turn), np.sin(angles), rtol=0, atol=2e-15)
        np.testing.assert_allclose(
            tables.hann(turn), 0.5 - 0.5 * np.cos(angles), rtol=0, atol=1e-15
        )
