"""How outputs become answers, as a campaign that has begun has stored it."""

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from edgeflare.answers import DETECTIONS
from edgeflare.answers.interface import ModelInterface
from edgeflare.campaign.queries.seeds import OutputsStage
from edgeflare.campaign.queries.stage import CampaignRun
from edgeflare.campaign.settings.config import CampaignConfig, SearchConfig
from edgeflare.errors import StoreError
from edgeflare.models import InputSpec, TensorInfo
from edgeflare.store import Store

BOXES = TensorInfo("boxes", (1, 84, 100), "float32", None)
IMAGES = InputSpec(shape=(1, 64, 64, 3), dtype="float32", channels=3, size=(64, 64))
SIDE = ModelInterface(IMAGES, BOXES, kind=DETECTIONS, task="detection", outputs=(BOXES,))


def read(folder: Path, **output: Any) -> Any:
    with Store.create(folder, {}, environment={}) as store:
        store.set_models({"output": output}, {"output": output})
        absent: Any = MagicMock()
        config = CampaignConfig.model_construct(search=SearchConfig())
        run = CampaignRun(config, absent, absent, (SIDE, SIDE), store, absent, {"": ["board"]})
        OutputsStage(run).do()
        return run.readers


def test_a_detectors_format_comes_back(tmp_path: Path) -> None:
    detector = {"kind": "yolo", "activation": "none", "box": "cxcywh", "units": "pixels"}
    readers = read(tmp_path / "a", kind="detections", detector=detector)
    assert readers.deployed.kind == "detections"
    assert readers.deployed.options.kind == "yolo"


@pytest.mark.parametrize("detector", [{"kind": "nothing"}, {"kind": "yolo", "boxes": 1}])
def test_a_damaged_one_is_one_sentence_about_the_folder(tmp_path: Path, detector: object) -> None:
    with pytest.raises(StoreError, match="is damaged") as error:
        read(tmp_path / "a", kind="detections", detector=detector)
    assert "\n" not in str(error.value)
