"""What reports say of devices that answer differently with the same model."""

import dataclasses

import pytest
from campaign_stores import compared_campaign
from shown_numbers import numbers

from edgeflare import summarize
from edgeflare.analysis import EveryDevice, FingerprintDifference
from edgeflare.reports import print_document
from edgeflare.reports.devices import agreement_blocks
from edgeflare.words.devices import difference_line

FAST = {"name": "tflite", "version": "2.1", "delegate": "XNNPACK", "providers": ["a", "b"]}
PLAIN = {**FAST, "delegate": None, "providers": ["b"], "nodes": {"b": 3, "c": 1}}


@pytest.fixture
def pair(tmp_path):
    prints = ({"arch": "x86_64", "runtime": FAST}, {"arch": "x86_64", "runtime": PLAIN})
    with compared_campaign(tmp_path / "c", *prints) as store:
        (found,) = summarize(store).agreements
    return found


def test_what_differs_is_grouped_and_long_lists_are_counted(pair):
    flags = FingerprintDifference(
        "cpu_flags", ["avx", "fma", "sse"], ["asimd", "crc32"], "hardware"
    )
    found = (
        FingerprintDifference("kernel", "Linux 6", "Linux 5", "system"),
        FingerprintDifference("board", None, "Raspberry Pi 4", "hardware"),
        FingerprintDifference("cpu", "EPYC", "0xd08", "hardware"),
        flags,
    )
    assert numbers(difference_line(dataclasses.replace(pair, differences=found))) == "4 72 3 2 6 5"
    other = (
        FingerprintDifference("board", None, "virt", "hardware"),
        FingerprintDifference("soc", None, "virt", "hardware"),
        flags,
        FingerprintDifference("arch", "x86_64", "aarch64", "hardware"),
    )
    assert numbers(difference_line(dataclasses.replace(pair, differences=other))) == "86 64 64"
    assert "no difference" in difference_line(dataclasses.replace(pair, differences=()))


def test_what_is_on_all_devices_is_reported_of_more_than_two(pair, capsys):
    print_document(agreement_blocks([pair], EveryDevice(2, 9, 7)))
    assert "7 of 9" not in capsys.readouterr().out
    print_document(agreement_blocks([pair], EveryDevice(3, 9, 7)))
    assert "7 of 9" in capsys.readouterr().out
