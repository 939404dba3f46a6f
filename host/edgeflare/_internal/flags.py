"""The command-line flags of the configuration, and error sentences by their names.

Each flag is stated once, at the field that it sets.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from edgeflare._internal import plugins

FILES, OUTPUTS, DEVICES = "Models and seeds", "Detections and values", "Devices"
SURVEY, SEARCH = "Survey", "Search"
_PANELS = {
    "original": FILES,
    "deployed": FILES,
    "seeds": FILES,
    "search": SEARCH,
    "survey": SURVEY,
    "fleet": DEVICES,
}


KINDS_OF_DECODERS = ("decoder of text", "decoder of boxes")
"""The tags of the two kinds of decoders, which are no keys of a file."""
KINDS_OF_LIMITS = ("limit for all classes", "limits by class")
"""The tags of a limit that is a number or a table, which are no keys of a file."""
_TAGS = frozenset((*KINDS_OF_DECODERS, *KINDS_OF_LIMITS))


@dataclass(frozen=True, eq=False)
class Flag:
    """A flag that sets the field in whose annotation it stands.

    `help` is by default the field's description, `panel` (of ``--help``) that of the field's table.
    `only_in` names tables: a field of `ModelConfig` is one of [original] and of [deployed], and a
    flag sets it in both unless ``only_in=("deployed",)``. With a `key` it sets this entry, of type
    `type`, of a field that is a table. Without one a `type` is what the parser takes, and the field makes its own of it. `example` is the starter file's value. With `each` there is
    one flag more for each model, ``--original-...`` and ``--deployed-...``; `deployed` is added to
    the latter's help. A name ``--this/--no-this`` sets true or false; one without dashes is an argument. The help ends with the installed
    plug-ins of the kind `names` that it doesn't name itself. `parser` makes a path of what was typed.
    """

    name: str
    help: str = ""
    metavar: str | None = None
    panel: str | None = None
    only_in: tuple[str, ...] = ()
    key: str = ""
    type: Any = None
    example: Any = None
    each: bool = False
    deployed: str = ""
    names: plugins.Kind | None = None
    parser: Callable[[str], Any] | None = None

    @property
    def parameter(self) -> str:
        """The name under which the command line parser returns its value."""
        return self.name.partition("/")[0].removeprefix("--").replace("-", "_")


@dataclass(frozen=True)
class Typed:
    """What the user typed of the configuration.

    `values` is the nested table of it; `flags` has the flag of each key in that:
    ``{"search.timeout_s": "--timeout"}``.
    """

    values: dict[str, Any] = dataclass_field(default_factory=dict)
    flags: dict[str, str] = dataclass_field(default_factory=dict)

    def has(self, table: str) -> bool:
        """Whether the path of this model, or of the seeds, was typed."""
        return "path" in self.values.get(table, {})


class FlagsOfCampaign:
    """Makes flags of a campaign's configuration a command's, in the annotation of a field of the type `Typed`.

    These are those named, by parameter name, or all but those `without`; `changed` are other values for
    fields of these flags.
    """

    def __init__(
        self, *names: str, without: Sequence[str] = (), **changed: Mapping[str, Any]
    ) -> None:
        self.names, self.without, self.changed = names, without, changed


class ForTasks:
    """Marks a setting, in the annotation of its field, that answers of these tasks alone have."""

    def __init__(self, *tasks: str) -> None:
        self.tasks = tasks


class SettingFlag(NamedTuple):
    """A flag, its field, and the places of that in the configuration: ("search", "timeout_s").

    `default` is what the command's help shows as such: None for the configuration's, which a file states.
    """

    flag: Flag
    field: FieldInfo
    places: tuple[tuple[str, ...], ...]
    default: Any = None

    @property
    def help(self) -> str:
        """The help text."""
        text = self.flag.help or self.field.description or ""
        names = plugins.names(self.flag.names) if self.flag.names else ()
        further = [name for name in names if name not in text]
        return f"{text} Installed: {', '.join(further)}." if further else text

    @property
    def panel(self) -> str | None:
        """The panel of ``--help`` in which it stands."""
        table, *key = self.places[0]
        return self.flag.panel or (_PANELS.get(table) if key else None)

    @property
    def is_table(self) -> bool:
        """Whether its values are entries of a table, KEY=VALUE."""
        kind = _plain(self.field.annotation)
        return get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, BaseModel))

    @property
    def kind(self) -> Any:
        """The type of its value: bool, int, float, Path, str; list[str] if it may be repeated."""
        kind = _plain(self.field.annotation)
        if self.flag.type is not None and not self.flag.key and get_origin(kind) is not tuple:
            return self.flag.type
        if get_origin(kind) is tuple:
            return list[str] if self.flag.parser is None else list[Path]
        return kind if kind in (bool, int, float, Path) else str


def flags_of(config: type[BaseModel]) -> list[SettingFlag]:
    """Return the flags of a configuration and of its tables, in the order of the fields."""
    found = []
    fields = config.model_fields
    tables = {name: table_of(field) for name, field in fields.items()}
    done = set[type[BaseModel]]()
    for name, field in fields.items():
        kind = tables[name]
        if kind is None:
            found += [_bound(flag, field, [(name,)]) for flag in flags_in(field)]
        elif kind not in done:
            done.add(kind)
            names = [other for other in tables if tables[other] is kind]
            for key, inner in kind.model_fields.items():
                for flag in flags_in(inner):
                    found.append(_bound(flag, inner, [(one, key) for one in flag.only_in or names]))
    return found


def flags_in(field: FieldInfo) -> list[Flag]:
    """Return the flags in a field's annotation, each model's own ones after that for both."""
    found: list[Flag] = []
    for flag in (one for one in field.metadata if isinstance(one, Flag)):
        found.append(flag)
        for table, model, more in (
            ("original", "original", ""),
            ("deployed", "deployed model", flag.deployed),
        ):
            if flag.each:
                name, text = f"--{table}-{flag.name[2:]}", f"The same for the {model} alone{more}."
                found.append(replace(flag, name=name, help=text, only_in=(table,)))
    return found


def table_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the class of a field that is a table of the configuration file, else None."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _typed_name(place: tuple[int | str, ...], typed: Mapping[str, str]) -> str | None:
    """Return the flag typed for the setting at this place or above it; None: there was none."""
    names = [".".join(map(str, place[:length])) for length in range(len(place), 0, -1)]
    return next((typed[name] for name in names if name in typed), None)


def _plain(annotation: Any) -> Any:
    """Return a type without its None and its annotations; of several types the first."""
    while (origin := get_origin(annotation)) in (Union, UnionType, Annotated):
        parts = get_args(annotation)
        annotation = (
            parts[0] if origin is Annotated else next(one for one in parts if one is not NoneType)
        )
    return annotation


def _bound(flag: Flag, field: FieldInfo, places: list[tuple[str, ...]]) -> SettingFlag:
    if flag.key:
        field = FieldInfo.from_annotation(flag.type)
        places = [(*place, flag.key) for place in places]
    return SettingFlag(flag, field, tuple(places))


_LONGEST = 40
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "path": "a path",
    "tuple": "a list",
    "list": "a list",
    "dict": "a table",
    "model": "a table",
    "finite": "a finite number",
}
"""What is wanted, by the first word of the problem's type, such as int_parsing."""
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("above", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
}


def problems_of(error: ValidationError, source: str, typed: Mapping[str, str] | None = None) -> str:
    """Return what is wrong with a few keys of `source`, misspelt ones first, as one sentence."""
    typed = typed or {}
    shown = sorted(
        _causes(error.errors()), key=lambda problem: problem["type"] != "extra_forbidden"
    )[:4]
    sentences, of_flags = zip(*(_sentence(problem, typed) for problem in shown), strict=True)
    text = "; ".join(dict.fromkeys(sentences))  # a flag may stand for two settings
    return text if all(of_flags) else f"{source}: {text}"


def _causes(problems: Sequence[Any]) -> Iterator[Any]:
    """Yield pydantic's problems that aren't the consequence of another one.

    An entry that is wrong counts as missing from its list, and what a decoder lacks may be what is
    misspelt.
    """
    misspelt = {problem["loc"][:-1] for problem in problems if problem["type"] == "extra_forbidden"}
    places = [tuple(problem["loc"]) for problem in problems]
    for problem, place in zip(problems, places, strict=True):
        within = any(other[: len(place)] == place and other != place for other in places)
        of_decoder = not set(place).isdisjoint(KINDS_OF_DECODERS)
        lacking = problem["type"] == "missing" and of_decoder and place[:-1] in misspelt
        if not lacking and (problem["type"] != "too_short" or not within):
            yield problem


_CONFLICT = "conflict"


@dataclass(frozen=True)
class Key:
    """A setting in an error's sentence on several settings of a table.

    It is written as `text` (by default its `name`, dotted below the table), or as the flag that was
    typed for it with `value` after it. `is_default`: no file states it.
    """

    name: str
    text: str = ""
    value: str = ""
    is_default: bool = False

    def __str__(self) -> str:
        return self.text or self.name


def conflict(template: str, **parts: Key | str) -> PydanticCustomError:
    """Return the error of settings that don't go together; `parts` fill the template."""
    return PydanticCustomError(_CONFLICT, template, {"template": template, **parts})


def _sentence(problem: Any, typed: Mapping[str, str]) -> tuple[str, bool]:
    """Return what is wrong, by typed flags, and whether these alone state it."""
    place = tuple(part for part in problem["loc"] if part not in _TAGS)
    if problem["type"] == _CONFLICT:
        parts = dict(problem["ctx"])
        keys = {name: part for name, part in parts.items() if isinstance(part, Key)}
        flags = {
            name: f"{flag} {key.value}".rstrip()
            for name, key in keys.items()
            if (flag := _typed_name((*place, *key.name.split(".")), typed))
        }
        if flags:
            sentence = parts.pop("template").format(**{**parts, **flags})
            return sentence, all(name in flags or key.is_default for name, key in keys.items())
    flag = _typed_name(place, typed)
    return problem_words(problem, flag or ".".join(str(part) for part in place)), flag is not None


def _message(problem: Any) -> str:
    text: str = problem["msg"].removeprefix("Value error, ")
    return text


def problem_words(problem: Any, key: str) -> str:
    """Return what pydantic finds wrong with the value of a key, and the value."""
    kind, about = problem["type"], problem.get("ctx", {})
    given = _shown(problem["input"])
    if kind == "missing":
        return f"{key} is missing"
    if kind == "extra_forbidden":
        return f"there is no setting {key}"
    if kind == "string_too_short":
        return f"{key} is empty"
    if kind == "too_short":
        return (
            f"{key} has {about['actual_length']} entries; it needs {about['min_length']} at least"
        )
    if kind == "too_long":
        return f"{key} has {about['actual_length']} entries; it takes {about['max_length']} at most"
    if kind == "literal_error":
        return f"{key} must be {about['expected']}, not {given}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{key} must be {words} {about[bound]:.15g}, not {given}"
    wanted = _KINDS.get(kind.partition("_")[0])
    if wanted is not None and key:
        return f"{key} must be {wanted}, not {given}"
    return f"{key}: {_message(problem)}" if key else _message(problem)


def _shown(value: object) -> str:
    """Return a value as it stands in a TOML file, as far as it is short."""
    if isinstance(value, Mapping):
        return "a table"
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(value)
    text = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan", "null": "nothing"}.get(text, text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
