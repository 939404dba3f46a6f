"""The audio operators: what each does to a sound, and audiomentations' own as the yardstick."""

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from shown_numbers import numbers

from edgeflare_mutators import (
    BandPass,
    Gain,
    Operator,
    OperatorOutputError,
    ParamsError,
    PitchShift,
    Room,
    Sample,
    SampleError,
    SampleSpec,
    Tempo,
    TimeShift,
    TimeStretch,
    WhiteNoise,
    corruptions,
    default_pool,
    get,
    kind_of,
    operators,
)
from edgeflare_mutators.base import Params

RATE = 16_000

WITHOUT = """
import sys
sys.modules["audiomentations"] = None
import numpy as np
from edgeflare_mutators import MutationError, WhiteNoise, Gain, Room
sound = np.ones(9, np.float32) / 2
print(WhiteNoise().apply(sound, {"level": 0.0, "seed": 1}).sum())
WhiteNoise().check_libraries()
for ask in (lambda: Gain().apply(sound, {"decibels": 3.0}), Gain().check_libraries):
    try:
        ask()
    except MutationError as error:
        print(error)
"""

LAZY = """
import sys
from edgeflare_mutators import corruptions
corruptions("audio")
print({"audiomentations", "librosa", "scipy", "cv2"} & sys.modules.keys())
"""


def tone(hertz: float = 440.0, seconds: float = 1.0, rate: int = RATE) -> Sample:
    time = np.arange(round(seconds * rate)) / rate
    return (0.5 * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def pitch(sample: Sample, rate: int = RATE) -> float:
    """Return the strongest frequency in Hz."""
    spectrum = np.abs(np.fft.rfft(sample * np.hanning(sample.size)))
    return float(spectrum.argmax() * rate / sample.size)


def power(sample: Sample) -> float:
    return float(np.square(sample, dtype=np.float64).mean())


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_library(transform: Any, sample: Sample, **parameters: Any) -> Sample:
    transform.parameters = {"should_apply": True, **parameters}
    transform.freeze_parameters()
    return transform(sample, RATE)


def test_the_pool_is_the_papers_four_and_the_extras_come_after_them() -> None:
    four = ["time-stretch", "pitch-shift", "time-shift", "gain"]
    assert list(default_pool("audio")) == four
    assert list(corruptions("audio")) == [*four, "white-noise", "room", "band-pass", "tempo"]
    assert list(operators("audio")) == list(corruptions("audio"))
    assert [name for name, one in corruptions("audio").items() if not one.keeps_length] == ["tempo"]
    assert all(get(name) is one for name, one in operators("audio").items())
    assert not operators("audio").keys() & operators("image").keys()


@pytest.mark.parametrize("rate", [8_000, 48_000])
@pytest.mark.parametrize("speed", [0.8, 1.25])
def test_a_stretch_keeps_pitch_and_length_and_moves_what_is_heard(rate: int, speed: float) -> None:
    quiet = np.zeros(rate // 2, np.float32)
    sample = np.concatenate((quiet, tone(440, 0.25, rate), quiet))
    stretched = TimeStretch().apply(sample, {"speed": speed, "sample_rate": rate})
    assert stretched.size == sample.size
    begin = np.flatnonzero(np.abs(stretched) > 0.1)[0] / rate
    assert begin == pytest.approx(0.5 / speed, abs=0.05)
    middle = stretched[round((0.5 / speed) * rate) :][: rate // 4]
    assert pitch(middle, rate) == pytest.approx(440, rel=0.03)


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.25, 3.0])
def test_tempo_changes_the_length_by_the_speed(speed: float) -> None:
    played = Tempo().apply(tone(), {"speed": speed, "sample_rate": RATE})
    assert played.size == pytest.approx(RATE / speed, abs=1)
    assert pitch(played) == pytest.approx(440, rel=0.02)


@pytest.mark.parametrize("semitones", [-4.0, 3.0, 12.0])
def test_a_pitch_shift_moves_the_pitch_alone(semitones: float) -> None:
    shifted = PitchShift().apply(tone(), {"semitones": semitones, "sample_rate": RATE})
    assert shifted.size == RATE
    assert pitch(shifted) == pytest.approx(440 * 2 ** (semitones / 12), rel=0.02)


def test_a_time_shift_takes_what_leaves_at_one_end_in_at_the_other() -> None:
    ramp = np.linspace(0.2, 0.9, RATE, dtype=np.float32)
    later = TimeShift().apply(ramp, {"share": 0.25, "sample_rate": RATE})
    assert np.array_equal(later[4100:-100], ramp[100:-4100])
    assert np.array_equal(later[:3900], ramp[-4000:-100])
    earlier = TimeShift().apply(ramp, {"share": -0.25, "sample_rate": RATE})
    assert np.array_equal(earlier[100:11_900], ramp[4100:15_900])


def test_gain_is_in_decibels_and_clips() -> None:
    assert Gain().apply(tone(), {"decibels": -6.0}).max() == pytest.approx(0.5 * 10**-0.3, rel=1e-4)
    loud = Gain().apply(tone(), {"decibels": 12.0})
    assert (loud.min(), loud.max()) == (-1, 1)


@pytest.mark.parametrize(("level", "decibels"), [(0.01, 40), (0.1, 20), (0.5, 6.02)])
def test_the_level_of_the_noise_is_its_snr(level: float, decibels: float) -> None:
    sample = tone() / 4
    noise = WhiteNoise().apply(sample, {"level": level, "seed": 7}) - sample
    assert 10 * math.log10(power(sample) / power(noise)) == pytest.approx(decibels, abs=0.2)
    spectrum = np.abs(np.fft.rfft(noise)) ** 2
    low, high = spectrum[:4000].mean(), spectrum[4000:].mean()
    assert low == pytest.approx(high, rel=0.1)


def test_a_room_answers_a_click_with_noise_that_falls_by_60_decibels() -> None:
    click = np.zeros(RATE, np.float32)
    click[100] = 1
    room = {"wet": 1.0, "decay": 0.5, "seed": 3, "sample_rate": RATE}
    heard = Room().apply(click, room)
    assert np.abs(heard[:99]).max() < 1e-6
    early, late = power(heard[100:900]), power(heard[6500:7300])
    assert 10 * math.log10(early / late) == pytest.approx(60 * 6400 / 8000, abs=1.5)
    assert np.square(heard, dtype=np.float64).sum() == pytest.approx(1, rel=1e-3)
    half = Room().apply(click, room | {"wet": 0.5})
    assert np.allclose(half, (click + heard) / 2, atol=1e-7)


def test_a_band_pass_keeps_what_lies_in_the_band() -> None:
    band = {"wet": 1.0, "center": 1000.0, "width": 0.5, "order": 4, "sample_rate": RATE}
    inside, outside = (BandPass().apply(tone(hertz), band) for hertz in (1000, 200))
    assert power(inside[2000:]) == pytest.approx(power(tone()), rel=0.05)
    assert power(outside[2000:]) < 1e-4 * power(tone())


def test_a_band_beyond_half_the_sample_rate_is_brought_below_it() -> None:
    band = {"wet": 1.0, "center": 4000.0, "width": 1.99, "order": 4, "sample_rate": 8000}
    assert power(BandPass().apply(tone(3000, 1, 8000), band)) > 0.5 * power(tone())
    assert numbers(BandPass().words(band)) == "100 16 4000"


@pytest.mark.parametrize(
    ("operator", "params", "transform", "parameters"),
    [
        (TimeStretch(), {"speed": 0.9}, "TimeStretch", {"rate": 0.9}),
        (PitchShift(), {"semitones": -1.5}, "PitchShift", {"num_semitones": -1.5}),
        (TimeShift(), {"share": 0.3}, "Shift", {"shift_amount": 0.3}),
        (
            BandPass(),
            {"wet": 1.0, "center": 900.0, "width": 1.5, "order": 3},
            "BandPassFilter",
            {"center_freq": 900.0, "bandwidth": 1350.0, "rolloff": 18},
        ),
    ],
    ids=["time-stretch", "pitch-shift", "time-shift", "band-pass"],
)
def test_the_bits_are_those_of_the_library_with_its_defaults(
    operator: Operator, params: Params, transform: str, parameters: dict[str, Any]
) -> None:
    import audiomentations

    sample = tone() * np.random.default_rng(0).uniform(0.5, 1, RATE).astype(np.float32)
    ours = operator.apply(sample, params | {"sample_rate": RATE})
    theirs = getattr(audiomentations, transform)()
    assert np.array_equal(ours, np.clip(of_library(theirs, sample, **parameters), -1, 1))


def test_the_default_ranges_are_the_librarys() -> None:
    import audiomentations

    ends = {
        name: (one.ranges[0].low, one.ranges[0].high) for name, one in default_pool("audio").items()
    }
    stretch, gain = audiomentations.TimeStretch(), audiomentations.Gain()
    shift, moved = audiomentations.PitchShift(), audiomentations.Shift()
    assert ends == {
        "time-stretch": (stretch.min_rate, stretch.max_rate),
        "pitch-shift": (shift.min_semitones, shift.max_semitones),
        "time-shift": (moved.min_shift, moved.max_shift),
        "gain": (gain.min_gain_db, gain.max_gain_db),
    }


@pytest.mark.parametrize("name", list(corruptions("audio")))
@pytest.mark.parametrize("samples", [1, 2, 3, 40, 1000])
def test_no_draw_leaves_a_clip_as_it_was(name: str, samples: int) -> None:
    operator = corruptions("audio")[name]
    sample = np.random.default_rng(1).uniform(-0.2, 0.2, samples).astype(np.float32)
    if samples == 1 and name in ("time-shift", "band-pass"):
        return  # one sample has no other place, and no frequency
    for seed in range(20):
        params = operator.draw(np.random.default_rng(seed), SampleSpec.of(sample, RATE))
        assert not np.array_equal(operator.apply(sample, params), sample)


@pytest.mark.parametrize("speed", [0.5, 10.0])
def test_a_stretch_to_the_limits_is_repeatable(speed: float) -> None:
    params = {"speed": speed, "sample_rate": RATE}
    assert len({TimeStretch().apply(tone(), params).tobytes() for _ in range(3)}) == 1
    assert Tempo().apply(tone()[:1], params).size >= 1
    with pytest.raises(ParamsError, match=r"from 0\.5"):
        TimeStretch().apply(tone(), params | {"speed": 0.49})  # the library would draw on its own


def test_audio_without_a_rate_is_refused_where_the_rate_is_needed() -> None:
    sample, rng = tone(), np.random.default_rng(0)
    assert Gain().draw(rng, SampleSpec.of(sample))
    with pytest.raises(SampleError, match="pitch-shift"):
        PitchShift().draw(rng, SampleSpec.of(sample))


def test_a_spec_distinguishes_audio_from_images_and_refuses_what_is_neither() -> None:
    assert SampleSpec.of(tone(), RATE) == SampleSpec("audio", (RATE,), RATE)
    image = np.zeros((4, 5, 3), np.uint8)
    assert SampleSpec.of(image, RATE) == SampleSpec("image", (4, 5, 3))
    assert (kind_of(tone()), kind_of(image)) == ("audio", "image")
    for shape, rate, words in (
        ((2, 9), RATE, r"mono and has the shape \(samples,\), at least one, not \(2, 9\)"),
        ((0,), RATE, "at least one"),
        ((9,), 999, "1000 to 768000 Hz, not 999; resample"),
    ):
        with pytest.raises(SampleError, match=words):
            SampleSpec("audio", shape, rate)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_no_numbers_are_refused_on_either_side(value: float) -> None:
    with pytest.raises(SampleError, match="holds NaN"):
        Gain().apply(np.array([0, value], np.float32), {"decibels": 1.0})
    with pytest.raises(OperatorOutputError, match="returned NaN"):
        _Defective(np.array([0, value], np.float32)).apply(tone(), {})


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (np.zeros(0, np.float32), r"shape \(16000"),
        (np.zeros((2, 9), np.float32), r"shape \(16000"),
        (np.zeros(9), "returned float64"),
    ],
)
def test_an_operator_that_declares_another_length_may_change_no_more(result, words) -> None:
    with pytest.raises(OperatorOutputError, match=words):
        _Defective(result).apply(tone(), {})


class _Defective(Operator):
    name = "defective"
    kind = "audio"
    keeps_length = False
    limits = ()

    def __init__(self, result: Sample) -> None:
        super().__init__()
        self._result = result

    def _apply(self, sample: Sample, params: Params) -> Sample:
        return self._result


def test_without_audiomentations_noise_and_room_work_and_the_others_say_what_to_install() -> None:
    heard, *told = python(WITHOUT).splitlines()
    assert float(heard) == 4.5
    assert len(told) == 2
    assert all("pip install 'edgeflare[audio]'" in line for line in told)


def test_no_library_of_audio_is_imported_before_a_sound_is_mutated() -> None:
    assert python(LAZY).strip() == "set()"
