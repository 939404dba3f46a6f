"""``repair recipes``, ``train``, ``abstain`` and ``examples``: what to deploy in place of a model that deviates."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgeflare.cli.options import CampaignFolder, Json, command
from edgeflare.cli.terminal import echo, echo_err, with_exit_codes

if TYPE_CHECKING:
    from pydantic import BaseModel

    from edgeflare.repair import (
        AbstainSettings,
        RecipesSettings,
        RepairedCampaign,
        TrainSettings,
    )

app = typer.Typer(
    no_args_is_help=True,
    help="Find what to deploy in place of a model that deviates, judged by searching again.",
)


def _recipes() -> "type[BaseModel]":
    from edgeflare.repair import RecipesSettings as Settings

    return Settings


def _train() -> "type[BaseModel]":
    from edgeflare.repair import TrainSettings as Settings

    return Settings


def _abstain() -> "type[BaseModel]":
    from edgeflare.repair import AbstainSettings as Settings

    return Settings


@command(app, _recipes)
def recipes(settings: "RecipesSettings", campaign: CampaignFolder, json: Json = False) -> None:
    """Quantise the original in other ways, search each anew, and name the one to ship."""
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask, handling_signals
    from edgeflare.repair import recipes_campaign
    from edgeflare.reports import recipes_document, write_front

    folder = settings.out or campaign / "repair" / "recipes"
    again = f"the same command goes on with what is in {folder}"
    with (
        handling_signals() as stop,
        batch_display(stop, what="candidate ", advice=lambda _: again) as watch,
    ):
        found = recipes_campaign(
            campaign,
            only=settings.recipe,
            **settings.model_dump(exclude={"recipe"}),
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


@command(app, _train)
def train(settings: "TrainSettings", campaign: CampaignFolder, json: Json = False) -> None:
    """Train DRepair: it takes the deployed model's probabilities and returns the original's class."""
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.terminal import ask
    from edgeflare.repair import train_campaign

    with progress_display() as progress:
        found = train_campaign(
            campaign,
            variant=settings.variant,
            max_inducing=settings.max_inducing,
            out=settings.out,
            search=settings.search,
            total_queries=settings.total_queries,
            ask=ask,
            progress=progress,
        )
    _print(found, json)


@command(app, _abstain)
def abstain(settings: "AbstainSettings", campaign: CampaignFolder, json: Json = False) -> None:
    """Find the margin of the deployed model below which it should leave the decision to another."""
    from edgeflare import UsageError
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.terminal import ask
    from edgeflare.repair import abstain_campaign
    from edgeflare.reports import SNIPPETS, write_curve

    snippet = settings.snippet
    if snippet is not None and snippet not in SNIPPETS:
        raise UsageError(f"there is no snippet in {snippet}; take {', '.join(SNIPPETS)}")
    with progress_display() as progress:
        found = abstain_campaign(
            campaign,
            catch=settings.catch,
            out=settings.out,
            search=settings.search,
            total_queries=settings.total_queries,
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


def _print(found: "RepairedCampaign", json: bool) -> None:
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import repaired_document

    print_result(json, found, lambda: repaired_document(found))
    if not json:
        if found.is_harmful:
            return
        command = ["edgeflare", "run", "--repair", found.path]
        echo_err(f"\nTo deploy it: {shlex.join(command)} and the flags of the campaign")
