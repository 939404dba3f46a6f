"""Options that several commands have, and the flags of the campaign's configuration."""

import inspect
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from edgeflare._internal.text import ADDRESS
from edgeflare.cli.terminal import with_exit_codes

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from edgeflare._internal.flags import FlagsOfCampaign, Typed
    from edgeflare.campaign import SettingFlag

S = TypeVar("S", bound="BaseModel")
T = TypeVar("T")


def folder(text: str) -> Path:
    """Return the folder that an argument names, by its path or an address in a database.

    The folder has pointers to its parts that are in a database. Ends the program as a command does
    where the address or the database can't be used.
    """
    from edgeflare.store import folder_at

    return parsing(folder_at)(text)


def parsing(parser: Callable[[str], T]) -> Callable[[str], T]:
    """Return the parser of an argument; it ends the program as a command does, where it raises."""

    def parse(text: str) -> T:
        parsed: list[T] = []
        with_exit_codes(lambda: parsed.append(parser(text)))()
        return parsed[0]

    return parse


CampaignFolder = Annotated[
    Path, typer.Argument(parser=folder, help=f"A campaign's folder, or {ADDRESS}.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Force = Annotated[
    bool,
    typer.Option("--force", help="Go on though a model, seed file or library is not what it was."),
]


def typed(given: Mapping[str, Any]) -> "Typed":
    """Return what a command's parsed parameters state; None and empty lists state nothing.

    A flag for one model wins over that for both. Raises UsageError for a KEY=VALUE that is none,
    and for an option stated in two ways.
    """
    from edgeflare._internal.flags import Typed

    found = Typed()
    for setting in sorted(_settings(), key=_generality):
        value: Any = given.get(setting.flag.parameter)
        if value in (None, [], ()):
            continue
        if setting.kind is Path:
            value = Path(value)
        entries = pairs(value, setting.flag.name) if setting.is_table else {"": value}
        for place in setting.places:
            for key, entry in entries.items():
                spelled = f"{setting.flag.name} {key}".rstrip()
                _put(found, (*place, key) if key else place, entry, spelled)
    if "control_model" in found.values:
        found.values["control"] = True
    return found


def _put(found: "Typed", place: tuple[str, ...], value: Any, spelled: str) -> None:
    """State a value; the later flag wins, but an option must not be stated in two ways."""
    from edgeflare import UsageError

    table, last = found.values, place[-1]
    for name in place[:-1]:
        table = table.setdefault(name, {})
    if place[:-1] == ("search", "options") and table.get(last, value) != value:
        raise UsageError(
            f"{spelled} {value} and --option {last}={table[last]} contradict each other; state one"
        )
    table[last] = value
    found.flags[".".join(place)] = spelled


def pairs(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """Return ``KEY=VALUE`` texts as a table.

    Numbers, true / false, comma-separated values, and lists and objects in JSON are read; the rest
    is text.
    """
    from edgeflare import UsageError

    table: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(f"{flag} {text!r} is not of the form KEY=VALUE")
        table[key.strip()] = _value(value.strip())
    return table


def _value(text: str) -> Any:
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    if "," in text:
        return [_value(part.strip()) for part in text.split(",")]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def with_settings(
    settings: "str | Callable[[], type[BaseModel]]", name: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator that makes a function one with typer's annotations, with flags of its settings.

    `settings` names a class of `edgeflare.cli.settings`, or returns one; it is asked for when the command
    of this `name` is parsed. The function takes an object of the class, then what it states itself. The
    attribute `command_class` of what is returned is the command's class.
    """

    def kind() -> "type[BaseModel]":
        if isinstance(settings, str):
            made: type[BaseModel] = getattr(import_module("edgeflare.cli.settings"), settings)
            return made
        return settings()

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def run(context: typer.Context, **stated: Any) -> None:
            function(settings_from(kind(), context.obj, name), **stated)

        _, *own = inspect.signature(function).parameters.values()
        context = inspect.Parameter(
            "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        made: Any = run
        made.__signature__ = inspect.Signature([context, *own])
        made.__doc__, made.__annotations__ = function.__doc__, {}
        made.command_class = command_with_flags(lambda: flags_of_settings(kind()))
        return run

    return decorate


def command(
    app: typer.Typer, settings: "str | Callable[[], type[BaseModel]]", name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator that adds a function as a command, see `with_settings`; by default of its name."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        called = name or function.__name__
        run: Any = with_settings(settings, called)(function)
        app.command(called, cls=run.command_class)(with_exit_codes(run))
        return function

    return add


def flags_of_settings(kind: "type[BaseModel]") -> list["SettingFlag"]:
    """Return the flags of a command's settings, in the order of the fields, with the fields' defaults.

    Where a field takes flags of the campaign these are among them.
    """
    from edgeflare._internal.flags import flags_in
    from edgeflare.campaign import SettingFlag

    flags = []
    for name, field in kind.model_fields.items():
        default = None if field.is_required() else field.get_default()
        flags += [SettingFlag(flag, field, ((name,),), default) for flag in flags_in(field)]
        if (campaign := _flags_of_campaign(field)) is not None:
            flags += _of_campaign(campaign.names, campaign.without, campaign.changed)
    return flags


def settings_from(kind: type[S], given: Mapping[str, Any], source: str) -> S:
    """Return a command's settings of its parsed parameters. Raises UsageError, by the flags' names."""
    from pydantic import ValidationError

    from edgeflare import UsageError
    from edgeflare._internal.flags import flags_in, problems_of

    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for field_name, field in kind.model_fields.items():
        for flag in flags_in(field):
            value = given.get(flag.parameter)
            if value not in (None, [], ()):
                values[field_name] = value
            if field_name in values or field.is_required():
                names.setdefault(field_name, flag.name)
        if (campaign := _flags_of_campaign(field)) is not None:
            flags = _of_campaign(campaign.names, campaign.without, campaign.changed)
            values[field_name] = typed(
                {one.flag.parameter: given.get(one.flag.parameter) for one in flags}
            )
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise UsageError(problems_of(error, source, names)) from error


def _flags_of_campaign(field: "FieldInfo") -> "FlagsOfCampaign | None":
    from edgeflare._internal.flags import FlagsOfCampaign

    return next((one for one in field.metadata if isinstance(one, FlagsOfCampaign)), None)


def command_with_flags(settings: Callable[[], Sequence["SettingFlag"]]) -> type[TyperCommand]:
    """Return the class of a command that takes flags of `settings`, which are asked for when it is parsed.

    The callback finds the values of all in its context's `obj`, by parameter name.
    """

    class CommandWithSettings(TyperCommand):
        has_settings = False

        def get_params(self, ctx: Any) -> Any:
            if not self.has_settings:
                self.has_settings = True
                self.params += _parameters(settings())
            return super().get_params(ctx)

        def invoke(self, ctx: Any) -> Any:
            known = {one.flag.parameter for one in settings()}
            ctx.obj = {name: ctx.params.pop(name) for name in known}
            return super().invoke(ctx)

    return CommandWithSettings


def _generality(setting: "SettingFlag") -> tuple[int, bool]:
    """Return what sorts flags by generality: for both models, for one, for one entry of a table."""
    return -len(setting.places), bool(setting.flag.key)


@cache
def _settings() -> list["SettingFlag"]:
    from edgeflare.campaign import CampaignConfig, flags_of

    return flags_of(CampaignConfig)


def _of_campaign(
    names: Sequence[str], without: Sequence[str], changed: Mapping[str, Mapping[str, Any]]
) -> list["SettingFlag"]:
    """Return the campaign's flags of these names, or all but some, with other values of their fields."""
    return [
        one._replace(flag=replace(one.flag, **changed.get(one.flag.parameter, {})))
        for one in _settings()
        if one.flag.parameter not in without and (not names or one.flag.parameter in names)
    ]


def _parameters(settings: Sequence["SettingFlag"]) -> list[Any]:
    """Return the command line parser's parameters for these flags."""

    def command(**flags: Any) -> None:
        del flags

    signature = inspect.Signature([_parameter(one) for one in settings])
    command.__signature__ = signature  # type: ignore[attr-defined] # typer reads it
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return [*typer.main.get_command(app).params]


def _parameter(setting: "SettingFlag") -> inspect.Parameter:
    kind = list[str] if setting.is_table else setting.kind
    limits = {
        name: getattr(one, name)
        for one in setting.field.metadata
        for name in ("gt", "ge", "lt", "le")
        if hasattr(one, name)
    }
    is_option = setting.flag.name.startswith("-")
    default = None if isinstance(setting.default, tuple) else setting.default
    parts: dict[str, Any] = {
        "metavar": "KEY=VALUE" if setting.is_table else setting.flag.metavar,
        "help": f"{setting.help} {_range(limits).capitalize()}." if limits else setting.help,
        "rich_help_panel": setting.panel,
        "callback": _within(limits) if limits else None,
        "parser": setting.flag.parser and parsing(setting.flag.parser),
    }
    name = setting.flag.name
    option = typer.Option(name, **parts) if is_option else typer.Argument(**parts)
    return inspect.Parameter(
        setting.flag.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty
        if setting.field.is_required() and not is_option
        else default,
        annotation=Annotated[kind | None, option],
    )


def _range(limits: Mapping[str, float]) -> str:
    """Return limits in words, such as "at least 0 and below 1"."""
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    return " and ".join(f"{words[name]} {limit:,.15g}" for name, limit in limits.items())


def _within(limits: Mapping[str, float]) -> Callable[[float | None], float | None]:
    """Return a check of limits, open ones included; typer has only closed ones, in its own words."""
    holds = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}

    def check(value: float | None) -> float | None:
        if value is None or all(holds[name](value, limit) for name, limit in limits.items()):
            return value
        raise typer.BadParameter(f"{value:.15g} is not {_range(limits)}.")

    return check
