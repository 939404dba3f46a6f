"""Writes the reference pages of the command line, the configuration files and the strategies.

    python docs/generate_reference.py           # writes the pages
    python docs/generate_reference.py --check   # exit code 1 where a page differs from the code

They are made from the commands, from the pydantic models that check files and options, and from the
operators, and are kept in the repository so that they can be read without a build.
"""

import argparse
import html
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from typer.cli import get_docs_for_click

from edgeflare._internal import plugins, toml
from edgeflare._internal.flags import flags_in
from edgeflare.campaign import CampaignConfig
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.campaign.settings.models import Section
from edgeflare.cli import app
from edgeflare.devices import Device
from edgeflare.devices.runtimes import DeviceOptions
from edgeflare.models import DecoderOptions, DetectorOptions
from edgeflare.nightly import NightlyConfig
from edgeflare.strategies import strategy_names, strategy_options
from edgeflare.strategies.dflare import VARIANTS
from edgeflare.survey import Family, families_for
from edgeflare.survey.family import CorruptionFamily
from edgeflare_bench import Suite
from edgeflare_mutators import (
    SAMPLE_RATE,
    SEED,
    Kind,
    Operator,
    common_corruptions,
    corruptions,
    default_pool,
    operators,
    reference_pool,
)
from edgeflare_mutators import get as operator_named

FOLDER = Path(__file__).resolve().parent / "reference"
_NOTE = "<!-- Made by docs/generate_reference.py: change the code, then run that. -->\n\n"


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    return {
        "cli.md": command_line(),
        "campaign-toml.md": settings(
            CampaignConfig,
            "campaign.toml",
            "The settings of a campaign. `edgeflare init` writes a commented file with all of them "
            "and `edgeflare run campaign.toml` runs it; a flag wins over the file. Relative paths "
            "start at the file's folder. The table `[deployed]` has the settings of `[original]`.",
            elsewhere=("deployed",),
        ),
        "devices-toml.md": settings(
            Device,
            "devices.toml",
            "The device inventory, `devices.toml` in the current folder or "
            "`~/.config/edgeflare/devices.toml`, has a table `[devices.NAME]` for each device. What "
            "is left out is taken from `~/.ssh/config`, then from SSH's defaults. How it is used: "
            "[Devices by name](../how-to/devices-toml.md).",
            table="devices.NAME",
            leave_out=("name",),
        ),
        "nightly-toml.md": settings(
            NightlyConfig,
            "nightly.toml",
            "The settings of `edgeflare nightly`. How it is used: "
            "[Every night](../how-to/nightly.md). The tables `[search]`, `[fleet]` and `[limits]` "
            "have the settings of [campaign.toml](campaign-toml.md).",
            elsewhere=(
                "search",
                "fleet",
                "limits",
                "models.original",
                "models.deployed",
                "models.seeds",
            ),
        ),
        "strategies.md": strategies(),
        "survey-families.md": survey_families(),
        "suite-toml.md": settings(
            Suite,
            "Benchmark suites",
            "A file for `edgeflare bench run FILE`. `edgeflare bench suites` lists those that come "
            "with EdgeFlare. `{data}` in a path stands for a folder given by `--data`. The tables "
            "of models and seeds have the settings of [campaign.toml](campaign-toml.md).",
            elsewhere=("pairs.original", "pairs.deployed", "pairs.seeds"),
        ),
    }


def command_line() -> str:
    """Return the page of all commands and their flags, by typer's own documentation command."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="edgeflare")
    text = html.unescape(text).replace("```console\n$ ", "```text\n")
    text = text.replace("# `edgeflare`\n", "# Command line\n", 1)
    text = re.sub(r"^(\* `[^`\n]*`): (?=.)", r"\1 -- ", text, flags=re.MULTILINE)
    return _NOTE + re.sub(r"^(#+) `(.*)`$", r"\1 \2", text, flags=re.MULTILINE).strip() + "\n"


def settings(
    kind: type[BaseModel],
    title: str,
    about: str,
    *,
    table: str = "",
    leave_out: tuple[str, ...] = (),
    elsewhere: tuple[str, ...] = (),
) -> str:
    """Return the page of a configuration file; tables in `elsewhere` have a page of their own."""
    parts = [f"# {title}", about, *_table(kind, table, leave_out, elsewhere)]
    return _NOTE + "\n\n".join(parts) + "\n"


def strategies() -> str:
    """Return the page of the built-in strategies and mutation operators."""
    parts = [
        "# Strategies and operators",
        _STRATEGIES,
        "## Strategies",
    ]
    documented: set[Any] = set()
    for name in ("boundary", *(one for one in strategy_names() if one != "boundary")):
        options = strategy_options(name)
        if plugins.origin("strategy", name) is not None:
            continue  # of another distribution of this environment
        parts += [f"### {name}", _prose(options.__doc__ or "")]
        parts += _options(options, name, documented)
        documented |= {options}
    parts += ["## Operators", _OPERATORS]
    groups: dict[str, Mapping[str, Operator]] = {
        "DFLARE's, of images": default_pool(),
        "Of the authors' code only": reference_pool(wrap=True),
        "Natural corruptions of images": corruptions(),
        "Further corruptions of images": common_corruptions(),
        "Corruptions of audio": corruptions("audio"),
    }
    listed: set[str] = set()
    for heading, pool in groups.items():
        parts += [f"### {heading}", _operators(one for one in pool if one not in listed)]
        listed |= pool.keys()
    missing = {*operators(), *operators("audio")} - listed
    assert not missing, missing  # noqa: S101
    return _NOTE + "\n\n".join(parts) + "\n"


def survey_families() -> str:
    """Return the page of the survey's families of inputs, by kind and group."""
    parts = ["# Families of the survey", _FAMILIES]
    kinds: dict[str, Kind] = {"Images": "image", "Audio": "audio"}
    for heading, kind in kinds.items():
        built_in = [one for one in families_for(kind).values() if one.group != "plugin"]
        rows = [[one.group, f"`{one.name}`", _cell(one.about + _reach(one))] for one in built_in]
        parts += [f"## {heading}", _markdown_table(["group", "family", "what it does"], rows)]
    return _NOTE + "\n\n".join(parts) + "\n"


def _reach(family: Family) -> str:
    """Return the ranges of a corruption's strength; "" where the family's own sentence has them."""
    if not isinstance(family, CorruptionFamily):
        return ""
    ranges = (
        f"`{one.name}` from {one.low:.3g} to {one.high:.3g}"
        for one in family.corruption.ranges
        if one.name in family.corruption.moving
    )
    return f" Here {', '.join(ranges)}."


_FAMILIES = (
    "The survey asks about inputs that lie far from the seed inputs. Each is made of one of them by "
    "a family, at a severity from 1 (mild) to 5 (as far as the family goes), and kept where the "
    "original is sure ([measured](../research/survey.md)). The parameters are drawn from the "
    "campaign's seed and stored; the same parameters give the same input on every CPU.\n\n"
    "For images the families contain the common corruptions of ImageNet-C ([Hendrycks and "
    "Dietterich, ICLR 2019](https://arxiv.org/abs/1903.12261)) except frost, which is made of "
    "photographs; its Gaussian noise is `noise`, its fog is `haze`, its brightness is `bright`. "
    "Where ours differ from them, [the operators](api/mutators.md#natural-corruptions-of-images) say "
    "so. Lengths are shares of the shorter side, so that small and large images change alike; "
    "to those of blurs and blocks up to 0.55 pixel is added. For grey images `saturation` and "
    "`swap` are left out.\n\n"
    "For audio, pitch, tempo and room are missing: the bits of those operators depend on the CPU. "
    "Filters are three running means, so they fall slowly beyond the frequency that is named.\n\n"
    "Natural corruptions of your own ([Add a mutation operator](../how-to/extend/operator.md)) are "
    "families by their names, in the group `plugin`: severity s has strengths from (s - 0.8) / 5 to "
    "s / 5."
)

_STRATEGIES = (
    "`--strategy NAME` chooses the search, `--option KEY=VALUE` (repeatable) its options, "
    "`--operator NAME` (repeatable) the mutation operators in place of the strategy's own. In "
    "[campaign.toml](campaign-toml.md#search) these are `strategy`, `options` and `operators` "
    "of `[search]`. Which to choose: [Choose and limit the search](../how-to/search-options.md)"
    ". Your own: [Add an operator, strategy, oracle, detector, runtime or transport]"
    "(../how-to/extend/index.md)."
)
_OPERATORS = (
    "A parameter is drawn uniformly from its range; in brackets what a recorded mutation may have. "
    "DFLARE's six are used by `dflare` with `pool=table-3`, by `diffchaser` and by `boundary` with "
    "`--crossing mutants`; with them or in their place the authors' code has three more, and other "
    "ranges (`pool=reference`). `--crossing natural` draws up to three natural corruptions. For "
    "audio the first four are the strategies' own, those of section 6.1 of the DFLARE paper; they "
    "need `pip install 'edgeflare[audio]'`."
)


def _options(options: Any, name: str, documented: set[Any]) -> Iterator[str]:
    """Yield the table of a strategy's options; of one that has another's, what is fixed."""
    if any(issubclass(options, one) for one in documented):
        fixed = ", ".join(f"`{key}={toml.dumps(one)}`" for key, one in options.fixed.items())
        yield f"Its options are those of `dflare`, with {fixed}."
        return
    flags = {one.key: one.name for one in flags_in(SearchConfig.model_fields["options"]) if one.key}
    schema = TypeAdapter(options).json_schema()
    rows = []
    for key, field in options.model_fields.items():
        cells = (f"`{key}`", _values(schema["properties"][key]), _default(field))
        flag = f"`{flags[key]}`" if key in flags else ""
        rows.append([_cell(cell) for cell in (*cells, field.description, flag)])
    if rows:
        yield _markdown_table(["option", "values", "default", "meaning", "flag"], rows)
    if name == "dflare":
        heads = ["`variant`", *VARIANTS["reference"]]
        yield _markdown_table(
            heads,
            [[one, *(f"`{two}`" for two in chosen.values())] for one, chosen in VARIANTS.items()],
        )


def _operators(names: Iterable[str]) -> str:
    """Return a table of operators: their parameters, and the first sentences of their docstrings."""
    rows = []
    for name in names:
        operator = operator_named(name)
        limits = {one.name: one for one in operator.limits}
        parameters = [
            f"`{one.name}` {one.low:,.10g} to {one.high:,.10g} "
            f"({limits[one.name].low:,.10g} to {limits[one.name].high:,.10g})"
            for one in operator.ranges
            if one.name not in (SEED.name, SAMPLE_RATE.name)
        ]
        about = _prose(operator.__doc__ or "").partition("\n\n")[0]
        rows.append([f"`{name}`", _cell("; ".join(parameters)), _cell(about)])
    return _markdown_table(["operator", "parameters", "what it does"], rows)


def _markdown_table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _table(
    kind: Any, name: str, leave_out: tuple[str, ...] = (), elsewhere: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the paragraphs of one TOML table, then those of the tables in it."""
    if issubclass(kind, BaseModel):
        fields = kind.model_fields
    else:
        fields = {
            key: FieldInfo(annotation=one, default=None)
            for key, one in kind.__annotations__.items()
        }
    schema = TypeAdapter(kind).json_schema()
    inner = []
    rows = []
    for key, field in fields.items():
        if key in leave_out or field.exclude:
            continue
        tables, several = _inner(field.annotation)
        place = f"{name}.{key}" if name else key
        if tables:
            inner += [(one, place, several, len(tables) > 1) for one in tables]
            continue
        found_flags = [
            one for one in flags_in(field) if not one.only_in or name in (*one.only_in, "")
        ]
        text = field.description or " ".join(one.help for one in found_flags[:1])
        flags = " ".join(f"`{one.name}`" for one in found_flags)
        cells = (f"`{key}`", _values(schema["properties"][key]), _default(field), text, flags)
        rows.append([_cell(cell) for cell in cells])
    heads = ["setting", "values", "default", "meaning", "flag"]
    used = [number for number in range(len(heads)) if any(row[number] for row in rows)]
    if rows:
        yield from (_prose(one.__doc__) for one in _documented(kind))
        used_rows = [[row[number] for number in used] for row in rows]
        yield _markdown_table([heads[number] for number in used], used_rows)
    for found, place, several, is_one_of in inner:
        heading = f"[[{place}]]" if several else f"[{place}]"
        if place in elsewhere:
            continue
        level = "###" if "." in place.removeprefix("devices.NAME.") else "##"
        yield f"{level} `{heading}`{_OF_KINDS[found] if is_one_of else ''}"
        yield from _table(found, place, elsewhere=elsewhere)


def _documented(kind: Any) -> list[Any]:
    """Return the classes whose docstrings tell of a table's settings: its own and those it extends."""
    shared = {dict, CampaignConfig, Device, Section, *BaseModel.__mro__}
    return [one for one in kind.__mro__ if one not in shared and one.__doc__]


_OF_KINDS: dict[Any, str] = {
    DecoderOptions: " of models that return text",
    DetectorOptions: " of detectors",
}
"""The rest of the heading where a table is one of several, by its `kind`."""


def _inner(annotation: Any) -> tuple[list[Any], bool]:
    """Return the classes of a setting that is a table of its own, and whether it may be repeated."""
    if annotation is DeviceOptions:
        return [annotation], False
    return _tables_in(annotation), getattr(annotation, "__origin__", None) is tuple


def _tables_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [found for part in parts for found in _tables_in(part)]


def _values(schema: dict[str, Any]) -> str:
    """Return what a setting may be, from its JSON schema."""
    kinds = schema.get("anyOf") or schema.get("oneOf")
    if kinds:
        found = [_values(one) for one in kinds if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(found))
    if "enum" in schema:
        return ", ".join(f"`{toml.dumps(one)}`" for one in schema["enum"])
    kind = schema.get("type", "")
    if kind == "array":
        if "prefixItems" in schema:
            return f"list of {len(schema['prefixItems'])}: {_values(schema['prefixItems'][0])}"
        return f"list: {_values(schema.get('items', {})) or 'any'}"
    words = {"integer": "whole number", "number": "number", "boolean": "`true`, `false`"}
    words |= {"object": "table", "string": "path" if schema.get("format") == "path" else "text"}
    limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]:,}" for key, sign in limits.items() if key in schema]
    return " ".join([words.get(kind, "any"), ", ".join(bounds)]).strip()


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or value in ({}, (), "") else f"`{toml.dumps(value)}`"


def _prose(docstring: str) -> str:
    """Return a docstring as Markdown: in one line a paragraph or item, code in single backticks."""
    paragraphs = re.split(r"\n\s*\n", docstring.strip().replace("``", "`"))
    return "\n\n".join(
        "\n".join(" ".join(item.split()) for item in re.split(r"\n\s*(?=- )", one))
        for one in paragraphs
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("``", "`").split()).replace("|", "\\|")


def main(check: bool) -> int:
    """Write the pages, or compare them; return the exit code."""
    wrong = []
    for name, text in pages().items():
        file = FOLDER / name
        if check and (not file.is_file() or file.read_text(encoding="utf-8") != text):
            wrong.append(name)
        elif not check:
            file.write_text(text, encoding="utf-8")
    if wrong:
        sys.stderr.write(
            f"not as the code is: {', '.join(wrong)}; run python docs/generate_reference.py\n"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    sys.exit(main(parser.parse_args().check))
