"""``repair recipes``, ``train``, ``abstain`` and ``examples``: what to deploy in place of a model that deviates."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from edgeflare.cli.options import CampaignFolder, Json, command_with, typed
from edgeflare.cli.terminal import echo, echo_err, with_exit_codes

if TYPE_CHECKING:
    from edgeflare.repair import RepairedCampaign

app = typer.Typer(
    no_args_is_help=True,
    help="Find what to deploy in place of a model that deviates, judged by searching again.",
)

_Out = Annotated[
    Path | None,
    typer.Option(help="The repair's file (.npz); by default one in CAMPAIGN/repair."),
]


def _share(text: object) -> float:
    """Return a share that is written as 0.01 or 1%."""
    number, is_percent = str(text).removesuffix("%"), str(text).endswith("%")
    try:
        return float(number) / (100 if is_percent else 1)
    except ValueError:
        raise typer.BadParameter(f"a share is a number such as 0.01 or 1%, not {text!r}") from None


_Search = Annotated[
    bool, typer.Option("--search/--no-search", help="Search again; by default yes.")
]
_SearchCommand = command_with(
    "total_queries",
    total_queries={
        "help": "Each new search gives the device N inputs at most; by default as many as the campaign took, "
        "and 20,000 at least."
    },
)


@app.command()
@with_exit_codes
def recipes(
    campaign: CampaignFolder,
    recipe: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Try this recipe alone; may be repeated."),
    ] = None,
    keep_float: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Try the 1 to N operators with the largest contributions in float (needs edgeflare "
            "explain).",
        ),
    ] = 2,
    survey: Annotated[
        bool, typer.Option("--survey", help="Survey each candidate, too, far from the seeds.")
    ] = False,
    quantizer_python: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="For TFLite originals: a Python that has ai-edge-quantizer; by default one is "
            "installed in the user's cache folder.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder for the candidates and their searches; by default CAMPAIGN/repair/recipes.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Quantise the original in other ways, search each anew, and name the one to ship."""
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask, handling_signals
    from edgeflare.repair import recipes_campaign
    from edgeflare.reports import recipes_document, write_front

    again = f"the same command goes on with what is in {out or campaign / 'repair' / 'recipes'}"
    with (
        handling_signals() as stop,
        batch_display(stop, what="candidate ", advice=lambda _: again) as watch,
    ):
        found = recipes_campaign(
            campaign,
            only=recipe or (),
            out=out,
            keep_float=keep_float,
            survey=survey,
            quantizer_python=quantizer_python,
            ask=ask,
            progress=watch,
        )
    front = Path(found.folder) / "pareto.svg"
    write_front(found, front)
    print_result(json, found, lambda: recipes_document(found))
    if not json:
        echo_err(f"\nSize against disagreement: {front}")
        if found.script is not None:
            echo_err(f"{found.winner} as a script: {found.script}")


@app.command(cls=_SearchCommand)
@with_exit_codes
def train(
    context: typer.Context,
    campaign: CampaignFolder,
    variant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="paper (DRepair as published; the default) or standardised (repairs more and "
            "makes more worse).",
        ),
    ] = "paper",
    max_inducing: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            parser=_share,
            help="Of inputs on which the models agree, at most this share may deviate afterwards, "
            "such as 0.01 or 1%, on average over inputs like the campaign's.",
        ),
    ] = None,
    out: _Out = None,
    search: _Search = True,
    json: Json = False,
) -> None:
    """Train DRepair: it takes the deployed model's probabilities and returns the original's class."""
    from edgeflare import UsageError
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.terminal import ask
    from edgeflare.repair import VARIANTS, Variant, train_campaign

    if variant not in VARIANTS:
        raise UsageError(f"there is no variant {variant}; take {' or '.join(VARIANTS)}")
    with progress_display() as progress:
        found = train_campaign(
            campaign,
            variant=cast("Variant", variant),
            max_inducing=max_inducing,
            out=out,
            search=search,
            total_queries=_bound(context),
            ask=ask,
            progress=progress,
        )
    _print(found, json)


@app.command(cls=_SearchCommand)
@with_exit_codes
def abstain(
    context: typer.Context,
    campaign: CampaignFolder,
    catch: Annotated[
        float,
        typer.Option(metavar="SHARE", parser=_share, help="The share of deviations to catch."),
    ] = 0.95,
    snippet: Annotated[
        str | None,
        typer.Option(metavar="LANGUAGE", help="Print code for python, kotlin or c++ as well."),
    ] = None,
    out: _Out = None,
    search: _Search = True,
    json: Json = False,
) -> None:
    """Find the margin of the deployed model below which it should leave the decision to another."""
    from edgeflare import UsageError
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.terminal import ask
    from edgeflare.repair import abstain_campaign
    from edgeflare.reports import SNIPPETS, write_curve

    if snippet is not None and snippet not in SNIPPETS:
        raise UsageError(f"there is no snippet in {snippet}; take {', '.join(SNIPPETS)}")
    with progress_display() as progress:
        found = abstain_campaign(
            campaign,
            catch=catch,
            out=out,
            search=search,
            total_queries=_bound(context),
            ask=ask,
            progress=progress,
        )
    assert found.abstention is not None  # noqa: S101
    curve = Path(found.path).with_suffix(".svg")
    write_curve(found.abstention, curve)
    _print(found, json)
    if not json:
        echo_err(f"The share caught against the share deferred: {curve}")
        if snippet is not None:
            echo(SNIPPETS[snippet].format(threshold=found.abstention.threshold))


@app.command()
@with_exit_codes
def examples(
    campaign: CampaignFolder,
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    json: Json = False,
) -> None:
    """Write seed and triggering inputs with the original's answers, to fine-tune a model with."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import Text, write_fine_tuning

    found = write_fine_tuning(campaign, folder)
    text = (
        f"{found.inputs:,} inputs, of which {found.triggering:,} are triggering, in {found.folder}: "
        "examples.csv names each file and what the original answers to it"
    )
    print_result(json, found, lambda: [Text(text)])


def _bound(context: typer.Context) -> int | None:
    """Return the stated --total-queries."""
    fleet = typed(context.obj).values.get("fleet", {})
    return cast("int | None", fleet.get("total_queries"))


def _print(found: "RepairedCampaign", json: bool) -> None:
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import repaired_document

    print_result(json, found, lambda: repaired_document(found))
    if not json:
        if found.is_harmful:
            return
        command = ["edgeflare", "run", "--repair", found.path]
        echo_err(f"\nTo deploy it: {shlex.join(command)} and the flags of the campaign")
