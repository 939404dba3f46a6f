"""The demos: real MNIST digits, a float model and its int8 version, all shipped with EdgeFlare."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from pydantic import BaseModel

from edgeflare._internal import toml
from edgeflare._internal.flags import flags_in, table_of
from edgeflare.campaign.settings.config import CampaignConfig, config_from, merge
from edgeflare.errors import UsageError

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "demo"


_DEMOS: Mapping[str, tuple[Path, str, int, Mapping[str, Any]]] = {
    "classification": (
        FOLDER,
        "deployed.tflite",
        100,
        {"search": {"options": {"crossing": "least-l2", "effort": 64}, "max_queries": 5000}},
    ),
    "detection": (
        FOLDER.with_name("demo_detection"),
        "deployed.onnx",
        60,
        {"task": "detection", "search": {"max_queries": 5000}},
    ),
}


def demo_config(
    overrides: Mapping[str, Any] | None = None,
    typed: Mapping[str, str] | None = None,
    *,
    task: str = "classification",
    seeds: int = 20,
    out: Path | None = None,
    campaign_seed: int = 0,
) -> CampaignConfig:
    """Return the campaign of the demo of a task, with `overrides`.

    `task` is classification (a LeNet-5, 100 images of one digit) or detection (a small detector
    with the outputs of YOLOv8, 60 images of up to four digits). `seeds` is how many of the
    images take part. `typed` names the flags of the overrides, as in `config_from`. Raises
    UsageError, too, where there is no demo of the task, or not so many images.
    """
    if task not in _DEMOS:
        raise UsageError(f"there is no demo of {task!r}; take {' or '.join(_DEMOS)}")
    folder, deployed, most, settings = _DEMOS[task]
    if not 1 <= seeds <= most:
        raise UsageError(f"the demo of {task} has {most} seeds, not {seeds}; take 1 to {most}")
    values = {
        "original": {"path": folder / "original.onnx"},
        "deployed": {"path": folder / deployed},
        "seeds": {"path": folder / "seeds.npz", "limit": seeds},
        "out": out,
        "search": {"seed": campaign_seed},
    }
    return config_from(merge(merge(values, settings), overrides or {}), "demo", typed)


_HEAD = """\
# An EdgeFlare campaign. Run it with: edgeflare run campaign.toml
# Relative paths start at this file's folder. Flags of `edgeflare run` win over what stands here;
# `edgeflare run --help` says more of each setting.
# What is commented out has the default, or is an example.
"""
_COLUMN, _WIDTH = 26, 120


def _starter() -> str:
    """Return the file: each setting with a value and the first sentence of its description."""
    lines = [_HEAD, *_settings(CampaignConfig, "")]
    for name, field in CampaignConfig.model_fields.items():
        if (section := table_of(field)) is not None:
            lines += ["", _line(f"[{name}]", field.description), *_settings(section, name)]
    return "\n".join(lines) + "\n"


def _settings(section: type[BaseModel], table: str) -> Iterator[str]:
    for name, field in section.model_fields.items():
        if not table and table_of(field) is not None:
            continue
        of_table = [one for one in flags_in(field) if one.example is not None]
        flag = next((one for one in of_table if table in (one.only_in or (table,))), None)
        default = field.get_default(call_default_factory=True)
        value = flag.example if flag else next(iter(field.examples or ()), default)
        if value is not None:
            mark = "" if field.is_required() else "# "
            text = flag.help if flag and flag.help else field.description
            yield _line(f"{mark}{name} = {toml.dumps(value)}", text)


def _line(setting: str, text: str | None) -> str:
    """Return a line with a comment behind the setting, or above it where that is too long."""
    comment = re.split(r"\.(?:\s|$)", text or "")[0]
    line = f"{setting:<{_COLUMN}}  # {comment}"
    if len(line) <= _WIDTH:
        return line
    above = fill(comment, _WIDTH, initial_indent="#   ", subsequent_indent="#   ")
    return f"{above}\n{setting}"


STARTER = _starter()


def write_starter(path: Path) -> None:
    """Write a commented campaign file. Raises UsageError where it exists or can't be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(STARTER)
    except FileExistsError as error:
        raise UsageError(f"{path} exists; name another file, or edit that one") from error
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error
