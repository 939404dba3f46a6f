"""``repair recipes``, ``train``, ``abstain`` and ``examples``: what to deploy in place of a model that deviates."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from edgeflare.cli.options import CampaignFolder, Json, command_with_settings, settings_from
from edgeflare.cli.terminal import echo, echo_err, with_exit_codes

if TYPE_CHECKING:
    from pydantic import BaseModel

    from edgeflare.repair import RepairedCampaign

app = typer.Typer(
    no_args_is_help=True,
    help="Find what to deploy in place of a model that deviates, judged by searching again.",
)


def _settings(command: str) -> type[TyperCommand]:
    """Return the class of a command with the flags of its settings."""

    def settings() -> "type[BaseModel]":
        from edgeflare.repair import AbstainSettings, RecipesSettings, TrainSettings

        kinds: dict[str, type[BaseModel]] = {
            "recipes": RecipesSettings,
            "train": TrainSettings,
            "abstain": AbstainSettings,
        }
        return kinds[command]

    return command_with_settings(settings)


@app.command(cls=_settings("recipes"))
@with_exit_codes
def recipes(context: typer.Context, campaign: CampaignFolder, json: Json = False) -> None:
    """Quantise the original in other ways, search each anew, and name the one to ship."""
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask, handling_signals
    from edgeflare.repair import RecipesSettings, recipes_campaign
    from edgeflare.reports import recipes_document, write_front

    stated = settings_from(RecipesSettings, context.obj, "repair recipes")
    folder = stated.out or campaign / "repair" / "recipes"
    again = f"the same command goes on with what is in {folder}"
    with (
        handling_signals() as stop,
        batch_display(stop, what="candidate ", advice=lambda _: again) as watch,
    ):
        found = recipes_campaign(
            campaign,
            only=stated.recipe,
            **stated.model_dump(exclude={"recipe"}),
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


@app.command(cls=_settings("train"))
@with_exit_codes
def train(context: typer.Context, campaign: CampaignFolder, json: Json = False) -> None:
    """Train DRepair: it takes the deployed model's probabilities and returns the original's class."""
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.terminal import ask
    from edgeflare.repair import TrainSettings, train_campaign

    stated = settings_from(TrainSettings, context.obj, "repair train")
    with progress_display() as progress:
        found = train_campaign(
            campaign,
            variant=stated.variant,
            max_inducing=stated.max_inducing,
            out=stated.out,
            search=stated.search,
            total_queries=stated.total_queries,
            ask=ask,
            progress=progress,
        )
    _print(found, json)


@app.command(cls=_settings("abstain"))
@with_exit_codes
def abstain(context: typer.Context, campaign: CampaignFolder, json: Json = False) -> None:
    """Find the margin of the deployed model below which it should leave the decision to another."""
    from edgeflare import UsageError
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.terminal import ask
    from edgeflare.repair import AbstainSettings, abstain_campaign
    from edgeflare.reports import SNIPPETS, write_curve

    stated = settings_from(AbstainSettings, context.obj, "repair abstain")
    snippet = stated.snippet
    if snippet is not None and snippet not in SNIPPETS:
        raise UsageError(f"there is no snippet in {snippet}; take {', '.join(SNIPPETS)}")
    with progress_display() as progress:
        found = abstain_campaign(
            campaign,
            catch=stated.catch,
            out=stated.out,
            search=stated.search,
            total_queries=stated.total_queries,
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
