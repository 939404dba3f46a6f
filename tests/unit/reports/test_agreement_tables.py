"""What reports say of devices that answer differently with the same model."""

import pytest
from stores import compared_campaign

from edgeflare import summarize
from edgeflare.analysis import EveryDevice
from edgeflare.reports import print_document
from edgeflare.reports.devices import agreement_blocks

FAST = {"name": "tflite", "version": "2.1", "delegate": "XNNPACK", "providers": ["a", "b"]}
PLAIN = {**FAST, "delegate": None, "providers": ["b"], "nodes": {"b": 3, "c": 1}}


@pytest.fixture
def pair(tmp_path):
    prints = ({"arch": "x86_64", "runtime": FAST}, {"arch": "x86_64", "runtime": PLAIN})
    with compared_campaign(tmp_path / "c", *prints) as store:
        (found,) = summarize(store).agreements
    return found


def test_what_is_on_all_devices_is_reported_of_more_than_two(pair, capsys):
    print_document(agreement_blocks([pair], EveryDevice(2, 9, 7)))
    assert "7 of 9" not in capsys.readouterr().out
    print_document(agreement_blocks([pair], EveryDevice(3, 9, 7)))
    assert "7 of 9" in capsys.readouterr().out
