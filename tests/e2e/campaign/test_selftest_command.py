"""``edgeflare selftest``, as a user runs it."""

from pathlib import Path

import pytest
from command import must_run


@pytest.mark.extended
def test_no_false_alarm_on_this_machine_and_the_int8_model_is_found_out(tmp_path: Path) -> None:
    ran = must_run("selftest", "--seeds", 2, "--json", home=tmp_path)
    result = ran.json
    assert result["passed"] is True
    assert [(pair["searches"], pair["false_alarms"]) for pair in result["pairs"]] == [(2, 0)] * 3
    assert [pair["triggers"] > 0 for pair in result["pairs"]] == [False, False, True]
    assert {path.name for path in tmp_path.iterdir()} <= {".cache"}, "nothing is left behind"
