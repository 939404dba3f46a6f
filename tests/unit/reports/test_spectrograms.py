"""Spectrograms of sounds that are known, and sounds as files."""

import io

import cv2
import numpy as np
import pytest
import soundfile
from example_answers import chirp

from edgeflare.reports.media import (
    COLOURS,
    change_colours,
    indexed_png,
    level_colours,
    pcm_wav,
    spectrogram_panel,
    spectrograms,
)
from edgeflare.types import Sample

RATE = 8000


def tone(hertz: float, seconds: float = 1.0, loudness: float = 0.5) -> Sample:
    time = np.arange(round(seconds * RATE)) / RATE
    return (loudness * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


@pytest.mark.parametrize("hertz", [500, 1000, 3000])
def test_a_tone_is_a_line_at_its_frequency(hertz: int) -> None:
    seed, _, difference = spectrograms(tone(hertz), tone(hertz), RATE)
    rows, columns = seed.shape
    loudest = seed[:, columns // 2].argmax()
    assert abs((rows - 0.5 - loudest) / rows * RATE / 2 - hertz) <= RATE / 2 / rows
    assert seed.max() == COLOURS - 1
    assert set(difference.ravel()) <= {COLOURS // 2 - 1, COLOURS // 2}


def test_levels_are_those_of_the_louder_one_and_the_difference_has_a_sign() -> None:
    seed, trigger, louder = spectrograms(tone(1000, loudness=0.05), tone(1000, loudness=0.5), RATE)
    assert trigger.max() == COLOURS - 1
    assert seed.max() == round((COLOURS - 1) * (80 - 20) / 80)
    assert louder.max() == round((COLOURS - 1) * (40 + 20) / 80)
    *_, quieter = spectrograms(tone(1000, loudness=0.5), tone(1000, loudness=0.05), RATE)
    assert quieter.min() == COLOURS - 1 - louder.max()


def test_silence_follows_the_shorter_of_two_lengths() -> None:
    seed, _, difference = spectrograms(tone(1000, 0.5), tone(1000, 1.0), RATE)
    half = seed.shape[1] // 2
    assert seed[:, : half - 3].max() == COLOURS - 1
    assert seed[:, half + 3 :].max() == 0
    assert difference[:, half + 3 :].max() > COLOURS // 2


@pytest.mark.parametrize(
    "sample",
    [np.zeros(RATE, np.float32), np.array([0.5], np.float32), np.full(900, np.nan, np.float32)],
)
def test_awkward_sounds_have_pictures_too(sample: Sample) -> None:
    assert spectrograms(sample, sample, RATE)[0].size > 0
    assert spectrogram_panel(sample, sample, RATE).ndim == 3


def test_a_long_sound_has_no_larger_picture() -> None:
    seed, *_ = spectrograms(chirp(0, 60), chirp(1, 60), 16_000)
    assert max(seed.shape) <= 300
    assert len(indexed_png(seed, level_colours())) < 40_000


@pytest.mark.parametrize("palette", [level_colours(), change_colours()])
def test_a_picture_with_a_palette_has_exactly_its_colours(palette: np.ndarray) -> None:
    shades = np.random.default_rng(0).integers(0, COLOURS, (7, 5), np.uint8)
    data = np.frombuffer(indexed_png(shades, palette), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert image is not None
    np.testing.assert_array_equal(image[:, :, ::-1], palette[shades])


def test_louder_is_lighter_also_in_grey() -> None:
    grey = level_colours() @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(grey) > 0).all()


def test_a_panel_has_the_three_spectrograms_and_their_axes() -> None:
    panel = spectrogram_panel(tone(1000), tone(2000), RATE)
    assert panel.dtype == np.uint8
    assert panel.shape[2] == 3
    colours = {tuple(one) for one in panel.reshape(-1, 3)}
    assert tuple(level_colours()[-1]) in colours
    assert {tuple(change_colours()[0]), tuple(change_colours()[-1])} <= colours
    assert (panel[:, :50] < 100).any()  # numbers beside the axis of frequencies


def test_a_sound_of_16_bits_comes_back_bit_by_bit() -> None:
    levels = np.random.default_rng(0).integers(-32768, 32768, 1000, np.int16)
    data, rate = soundfile.read(
        io.BytesIO(pcm_wav((levels / 32768).astype(np.float32), 44_100)), dtype="int16"
    )
    np.testing.assert_array_equal(data, levels)
    assert rate == 44_100


def test_what_is_out_of_range_is_clipped_and_the_file_is_one_that_every_player_takes() -> None:
    file = io.BytesIO(pcm_wav(np.array([2.0, -2.0, np.nan, 0.25], np.float32), RATE))
    data, _ = soundfile.read(file, dtype="int16")
    assert data.tolist() == [32767, -32768, 0, 8192]
    file.seek(0)
    about = soundfile.info(file)
    assert (about.format, about.subtype, about.channels) == ("WAV", "PCM_16", 1)
