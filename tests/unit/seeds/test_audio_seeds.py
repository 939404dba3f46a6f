"""Audio files, folders and archives as sources of seeds."""

import tracemalloc
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import pytest
import soundfile
from shown_numbers import numbers

from edgeflare.errors import SeedError, UsageError
from edgeflare.seeds import (
    SeedInput,
    audio_files,
    audio_source,
    changed_files,
    open_audio_seeds,
    open_seeds,
)
from edgeflare.seeds.npz import Archive

RATE = 16000


def tone(seconds=1.0, hz=440.0, peak=0.5, rate=RATE):
    return (peak * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype("f4")


def write(path, samples=None, rate=RATE, subtype="PCM_16", **how):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, tone() if samples is None else samples, rate, subtype=subtype, **how)
    return path


class Loaded(NamedTuple):
    seeds: list[SeedInput]
    reasons: dict[str, str]
    notices: list[str]

    @property
    def ids(self) -> list[str]:
        return [seed.id for seed in self.seeds]


def load(source, **options):
    opened = open_audio_seeds(source, **({"rate": RATE, "samples": RATE} | options))
    seeds = list(opened)
    return Loaded(seeds, {one.name: one.reason for one in opened.skipped}, opened.notices)


@pytest.mark.parametrize(
    ("name", "subtype", "levels"),
    [
        ("a.wav", "PCM_U8", 1 << 7), ("a.wav", "PCM_16", 1 << 15), ("a.flac", "PCM_16", 1 << 15),
        ("a.aiff", "PCM_16", 1 << 15), ("a.flac", "PCM_24", 1 << 23), ("a.wav", "PCM_32", 1 << 31),
    ],
)  # fmt: skip
def test_integers_are_value_over_full_scale(tmp_path, name, subtype, levels):
    shift = 32 - levels.bit_length()
    values = (np.array([0, 1, -1, 77, -(levels - 1), levels - 1]) << shift).astype(np.int32)
    path = write(tmp_path / name, values, subtype=subtype)
    (seed,) = load(path).seeds
    assert seed.sample.dtype == np.float32
    assert seed.sample.flags.c_contiguous
    np.testing.assert_array_equal(seed.sample, ((values >> shift) / levels).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "subtype"),
    [("a.wav", "FLOAT"), ("a.wav", "DOUBLE"), ("a.ogg", "VORBIS"), ("a.mp3", "MPEG_LAYER_III")],
)
def test_other_formats(tmp_path, name, subtype):
    (seed,) = load(write(tmp_path / name, subtype=subtype)).seeds
    assert seed.sample.shape == (RATE,)
    assert np.abs(seed.sample - tone()).max() < (1e-6 if name == "a.wav" else 0.05)


def test_a_folder_in_natural_order_with_labels(tmp_path):
    for name in ("yes/b10.wav", "yes/b9.wav", "no/a.wav", "other/x.wav", ".hidden/h.wav"):
        write(tmp_path / name)
    (tmp_path / "list.txt").write_text("")
    loaded = load(tmp_path, labels={"yes": 2, "no": 3})
    assert loaded.ids == ["no/a.wav", "other/x.wav", "yes/b9.wav", "yes/b10.wav"]
    assert [seed.label for seed in loaded.seeds] == [3, None, 2, 2]
    assert loaded.notices == [
        f"1 file (1 .txt) in {tmp_path} ignored: no audio file by name.",
        "1 audio file had no label: they are in no folder that the label mapping names.",
        "3 clips had the same samples as another one; all were kept.",
    ]


def test_several_channels_are_mixed_to_their_mean(tmp_path):
    left, right = tone(hz=200), tone(hz=900)
    write(tmp_path / "a.wav", np.stack([left, right], axis=1), subtype="FLOAT")
    write(tmp_path / "b.wav", tone(hz=300))
    loaded = load(tmp_path)
    np.testing.assert_allclose(loaded.seeds[0].sample, (left + right) / 2, atol=1e-7)
    assert "several channels" in "\n".join(loaded.notices)


def test_another_rate_is_refused_with_the_way_out(tmp_path):
    path = write(tmp_path / "a.wav", rate=8000)
    with pytest.raises(SeedError, match=r"16000 Hz.*--resample-audio"):
        load(path)


def test_other_rates_are_resampled_and_the_empty_octave_is_reported(tmp_path):
    write(tmp_path / "low.wav", tone(rate=8000), rate=8000)
    write(tmp_path / "high.wav", tone(rate=44100), rate=44100)
    loaded = load(tmp_path, resample=True)
    for seed in loaded.seeds:
        assert len(seed.sample) == RATE
        inner = slice(200, -200)
        assert np.abs(seed.sample[inner] - tone()[inner]).max() < 1e-3
    assert numbers("\n".join(loaded.notices)) == "1 8000 16000 4000 1 44100 16000"


def test_unusable_files_are_skipped_and_named(tmp_path):
    good = write(tmp_path / "a.wav")
    whole = good.read_bytes()
    flac = write(tmp_path / "b.flac", np.random.default_rng(0).uniform(-1, 1, RATE)).read_bytes()
    (tmp_path / "b.flac").write_bytes(flac[: len(flac) // 2])
    (tmp_path / "c.wav").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "d.wav").write_bytes(b"")
    (tmp_path / "e.wav").write_text("not audio, only words " * 100)
    write(tmp_path / "f.wav", np.zeros(0, "f4"))
    write(tmp_path / "g.wav", np.array([0, np.nan, 1], "f4"), subtype="FLOAT")
    write(tmp_path / "h.wav", np.array([0, np.inf, 1], "f4"), subtype="FLOAT")
    write(tmp_path / "i.wav", tone() * 32767, subtype="FLOAT")
    aiff = write(tmp_path / "j.aiff").read_bytes()
    (tmp_path / "j.aiff").write_bytes(aiff[: len(aiff) // 2])
    (tmp_path / "k.wav").mkdir()
    loaded = load(tmp_path)
    assert loaded.ids == ["a.wav"]
    for name, part in {
        "b.flac": "its sound is damaged",
        "c.wav": "cut short: its header promises 32000 bytes of sound, 15978 are there",
        "d.wav": "it is empty",
        "e.wav": "no audio of a known format",
        "f.wav": "it has no samples",
        "g.wav": "NaN",
        "h.wav": "infinity",
        "i.wav": "its samples reach 16383.5",
        "j.aiff": "cut short",
    }.items():
        assert part in loaded.reasons.pop(name)
    assert not loaded.reasons


def test_a_wav_written_to_a_pipe_is_whole(tmp_path):
    path = write(tmp_path / "a.wav")
    data = bytearray(path.read_bytes())
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    assert len(load(path).seeds[0].sample) == RATE


def test_nothing_usable_is_an_error(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"")
    with pytest.raises(SeedError, match=r"used; a\.wav"):
        load(tmp_path)


def test_odd_recordings_are_kept_and_reported(tmp_path):
    write(tmp_path / "beyond.wav", tone(peak=1.5), subtype="FLOAT")
    write(tmp_path / "clipped.wav", np.clip(tone(peak=1.5), -1, 1))
    write(tmp_path / "full.wav", tone(hz=4000, peak=1.0))
    write(tmp_path / "short.wav", tone(0.5))
    write(tmp_path / "silent.wav", np.zeros(RATE))
    loaded = load(tmp_path)
    assert len(loaded.seeds) == 5
    assert max(np.abs(seed.sample).max() for seed in loaded.seeds) == 1
    assert [len(seed.sample) for seed in loaded.seeds if seed.id == "short.wav"] == [RATE // 2]
    assert numbers("\n".join(loaded.notices)) == "1 1 2 1 1 1 1 0"


def test_a_longer_file_needs_a_rule(tmp_path):
    path = write(tmp_path / "a.wav", tone(2.5))
    with pytest.raises(SeedError, match=r"1 s.*--cut"):
        load(path)
    first = load(path, cut="first")
    assert first.ids == ["a.wav"]
    np.testing.assert_allclose(first.seeds[0].sample, tone(), atol=1e-4)
    assert numbers("\n".join(first.notices)) == "1 1 1"


@pytest.mark.parametrize(("rate", "frames"), [(RATE, RATE + 1), (2 * RATE, 2 * RATE + 2)])
def test_a_slightly_longer_file_is_reported_in_samples(tmp_path, rate, frames):
    path = write(tmp_path / "a.wav", np.zeros(frames, "f4"), rate)
    with pytest.raises(SeedError, match=f"{RATE + 1} samples"):
        load(path, resample=True)


def test_windows_cover_a_file_but_for_a_rest_of_less_than_half_a_window(tmp_path):
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 20 * RATE + 7).astype("f4")
    write(tmp_path / "a.wav", samples, subtype="FLOAT")
    write(tmp_path / "b.wav", samples[: 2 * RATE], subtype="FLOAT")
    write(tmp_path / "c.wav", samples[:RATE], subtype="FLOAT")
    loaded = load(tmp_path, cut="windows")
    assert loaded.ids == [
        *(f"a.wav@{second}.000s" for second in range(20)),
        *("b.wav@0.000s", "b.wav@1.000s", "c.wav"),
    ]
    joined = np.concatenate([seed.sample for seed in loaded.seeds[:20]])
    np.testing.assert_array_equal(joined, samples[: 20 * RATE])
    assert numbers(loaded.notices[0]) == "2 1 22 1 1"


def test_a_limit_takes_a_window_of_each_recording_before_a_second_one(tmp_path):
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 4 * RATE).astype("f4")
    write(tmp_path / "a.wav", samples, subtype="FLOAT")
    write(tmp_path / "b.wav", samples[: 2 * RATE], subtype="FLOAT")
    write(tmp_path / "c.wav", samples[:RATE], subtype="FLOAT")
    (tmp_path / "d.wav").write_bytes(b"no audio")
    whole = load(tmp_path, cut="windows")
    order = [
        0,
        4,
        6,
        1,
        5,
        2,
        3,
    ]  # of "a.wav@0.000s" to "a.wav@3.000s", "b.wav@0.000s", ..., "c.wav"
    for limit in (2, 5, 7, 9):
        loaded = load(tmp_path, cut="windows", limit=limit)
        assert loaded.ids == [whole.ids[place] for place in order[:limit]]
        assert len(loaded.reasons) == int(limit > 3)  # named once, however often windows are taken
        counted = f"{limit} clips of {min(limit, 3)} recordings taken"
        assert any(counted in notice for notice in loaded.notices) is (limit < 9)
    assert loaded.notices == whole.notices


@pytest.mark.parametrize("most_open", [64, 2])
def test_a_limit_reads_each_recording_once_and_opens_only_those_beyond_a_number_again(
    tmp_path, monkeypatch, most_open
):
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 12 * RATE).astype("f4")
    for name, seconds in (("a", 12), ("b", 5), ("c", 12), ("d", 3)):
        write(tmp_path / f"{name}.wav", samples[: seconds * RATE], subtype="FLOAT")
    frames, digests = Counter(), Counter()
    read, digest_of = soundfile.SoundFile.read, audio_files.sha256_of

    def counted(sound, *args, **options):
        block = read(sound, *args, **options)
        frames[Path(sound.name).name] += len(block)
        return block

    def counted_digest(file):
        digests[Path(file.name).name] += 1
        return digest_of(file)

    monkeypatch.setattr(soundfile.SoundFile, "read", counted)
    monkeypatch.setattr(audio_files, "sha256_of", counted_digest)
    monkeypatch.setattr(audio_source, "_MOST_OPEN", most_open)
    monkeypatch.setattr(audio_files, "_BLOCK_VALUES", RATE)
    whole = load(tmp_path, cut="windows")
    by_id = {seed.id: seed for seed in whole.seeds}
    frames.clear()
    digests.clear()
    limited = load(tmp_path, cut="windows", limit=32)
    assert sorted(limited.ids) == sorted(by_id)
    assert limited.ids[:5] == [*(f"{name}.wav@0.000s" for name in "abcd"), "a.wav@1.000s"]
    for seed in limited.seeds:
        np.testing.assert_array_equal(seed.sample, by_id[seed.id].sample)
        assert seed.file_sha256 == by_id[seed.id].file_sha256
    assert set(digests.values()) == {1}
    once = {"a.wav": 12 * RATE, "b.wav": 5 * RATE}
    assert {name: frames[name] for name in once} == once  # these stay open
    assert (frames["c.wav"] == 12 * RATE) is (most_open == 64)


def test_a_limit_reads_an_archive_of_few_rows_once(tmp_path, monkeypatch):
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 4 * RATE)).astype("f4")
    np.savez(tmp_path / "a.npz", audio=samples, rate=RATE)
    passes = []
    entries = Archive.entries

    def counted(archive):
        passes.append(archive)
        return entries(archive)

    monkeypatch.setattr(Archive, "entries", counted)
    loaded = load(tmp_path / "a.npz", cut="windows", limit=12)
    assert loaded.ids[2:5] == ["a.npz:2@0.000s", "a.npz:0@1.000s", "a.npz:1@1.000s"]
    joined = np.concatenate([seed.sample for seed in loaded.seeds[::3]])
    np.testing.assert_array_equal(joined, samples[0])
    assert len(passes) == 1
    monkeypatch.setattr(audio_source, "_MOST_OPEN_BYTES", 0)
    assert load(tmp_path / "a.npz", cut="windows", limit=12).ids == loaded.ids


def test_a_rest_of_half_a_window_is_a_clip_of_its_own(tmp_path):
    write(tmp_path / "a.wav", tone(2.5))
    loaded = load(tmp_path, cut="windows")
    assert loaded.ids == ["a.wav@0.000s", "a.wav@1.000s", "a.wav@2.000s"]
    assert [len(seed.sample) for seed in loaded.seeds] == [RATE, RATE, RATE // 2]


def test_windows_of_a_resampled_file_join_without_a_seam(tmp_path):
    path = write(tmp_path / "a.wav", tone(30, rate=48000), rate=48000)
    loaded = load(path, cut="windows", resample=True)
    assert len(loaded.seeds) == 30
    joined = np.concatenate([seed.sample for seed in loaded.seeds])
    inner = slice(200, -200)
    assert np.abs(joined[inner] - tone(30)[inner]).max() < 1e-3


def test_the_windows_before_the_damage_are_taken(tmp_path):
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 60 * RATE)
    path = write(tmp_path / "a.flac", samples)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    loaded = load(path, cut="windows")
    assert 10 < len(loaded.seeds) < 30
    assert f"taken, {len(loaded.seeds)} windows" in loaded.reasons["a.flac"]


def test_a_model_of_any_length_takes_files_whole_up_to_ten_minutes(tmp_path):
    write(tmp_path / "a.wav", tone(3.25))
    write(tmp_path / "b.flac", np.zeros(601 * 8000), rate=8000)
    loaded = load(tmp_path / "a.wav", samples=None)
    assert [len(seed.sample) for seed in loaded.seeds] == [3.25 * RATE]
    assert loaded.notices == []
    long = {"rate": 8000, "samples": None}
    with pytest.raises(SeedError, match="minutes; --cut"):
        load(tmp_path / "b.flac", **long)
    assert len(load(tmp_path / "b.flac", cut="windows", **long).seeds) == 20


def test_a_long_file_is_never_in_memory_as_a_whole(tmp_path):
    path = tmp_path / "a.wav"
    with soundfile.SoundFile(path, "w", 48000, 2, "PCM_16") as file:
        for _ in range(4):
            file.write(np.tile(tone(30, rate=48000)[:, None], 2))
    list(open_audio_seeds(path, rate=RATE, samples=RATE, cut="first", resample=True))
    tracemalloc.start()
    try:
        count = sum(
            1 for _ in open_audio_seeds(path, rate=RATE, samples=RATE, cut="windows", resample=True)
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 120
    assert peak < path.stat().st_size / 4


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_an_archive(tmp_path, dtype):
    scale = 32768 if dtype == "int16" else 1
    audio = (np.stack([tone(), tone(hz=600)]) * scale).astype(dtype)
    np.savez(tmp_path / "a.npz", audio=audio, rate=RATE, labels=[4, 5])
    loaded = load(tmp_path / "a.npz")
    assert loaded.ids == ["a.npz:0", "a.npz:1"]
    assert [seed.label for seed in loaded.seeds] == [4, 5]
    np.testing.assert_array_equal(loaded.seeds[1].sample, (audio[1] / scale).astype("f4"))


@pytest.mark.parametrize(
    ("arrays", "part"),
    [
        ({"audio": np.zeros((2, 5), "f4")}, "no 'rate'"),
        ({"audio": np.zeros((2, 5), "f4"), "rate": 0.5}, "whole number"),
        ({"audio": np.zeros((2, 5), "f8"), "rate": 8}, "float64"),
        ({"audio": np.zeros((2, 0), "f4"), "rate": 8}, "them empty"),
        ({"audio": np.zeros(5, "f4"), "rate": 8}, r"shape \[5\]"),
        ({"images": np.zeros((2, 4, 4), "u1")}, "holds images"),
    ],
)
def test_archives_of_another_kind_are_refused(tmp_path, arrays, part):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(SeedError, match=part):
        load(tmp_path / "a.npz")


def test_the_other_medium_is_named(tmp_path):
    image = tmp_path / "images" / "a.png"
    image.parent.mkdir()
    cv2.imwrite(str(image), np.zeros((4, 6), np.uint8))
    sound = write(tmp_path / "sounds" / "a.wav")
    np.savez(tmp_path / "a.npz", audio=np.zeros((1, 4), "f4"), rate=8)
    for source in (image, image.parent):
        with pytest.raises(SeedError, match="model takes"):
            load(source)
    for source in (sound, sound.parent, tmp_path / "a.npz"):
        with pytest.raises(SeedError, match=r"images.*front_end"):
            open_seeds(source, size=(4, 6), channels=1)


def test_a_missing_library_is_one_sentence(tmp_path, monkeypatch):
    path = write(tmp_path / "a.wav")
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    with pytest.raises(UsageError, match=r"edgeflare\[audio\]"):
        load(path)


def test_a_changed_file_of_windows_is_named_once(tmp_path):
    for name in ("a.wav", "deep/b.wav"):
        write(tmp_path / name, tone(3))
    known = [(seed.id, seed.file_sha256) for seed in load(tmp_path, cut="windows").seeds]
    assert len(known) == 6
    assert list(changed_files(tmp_path, known)) == []
    write(tmp_path / "deep" / "b.wav", tone(3, hz=500))
    assert list(changed_files(tmp_path, known)) == ["deep/b.wav"]


@pytest.mark.shared_data
def test_real_recordings_cut_into_windows(shared_data: Path):
    loaded = load(shared_data / "audio" / "speech", cut="windows")
    assert len(loaded.seeds) == 115
    assert "tflm_yes_1000ms.wav" in loaded.ids
    assert loaded.reasons == {}


def test_clips_shorter_than_a_long_window_are_no_news(tmp_path: Path) -> None:
    write(tmp_path / "short.wav", tone(0.5))
    assert load(tmp_path, samples=30 * RATE).notices == []
