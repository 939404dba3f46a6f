"""``repair train``: what to deploy instead of a model that deviates."""

import shlex
from pathlib import Path
from typing import Annotated, cast

import typer

from edgeflare.cli.options import Json
from edgeflare.cli.terminal import echo_err, with_exit_codes

app = typer.Typer(
    no_args_is_help=True,
    help="Find what to deploy instead of a model that deviates, judged by searching again.",
)

_Campaign = Annotated[Path, typer.Argument(help="A campaign's folder.")]
_Search = Annotated[
    bool, typer.Option("--search/--no-search", help="Search again on the repaired model.")
]


@app.command()
@with_exit_codes
def train(
    campaign: _Campaign,
    variant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="paper (DRepair as published) or bagged (several perceptrons in one, and a bound "
            "on what it makes worse).",
        ),
    ] = "bagged",
    max_inducing: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="For bagged: of inputs on which the models agree, at most this share may deviate "
            "afterwards.",
        ),
    ] = 0.01,
    out: Annotated[
        Path | None,
        typer.Option(help="The repair's file; by default CAMPAIGN/repair/VARIANT.npz."),
    ] = None,
    search: _Search = True,
    json: Json = False,
) -> None:
    """Train a classifier of the deployed model's probabilities that returns the original's class."""
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask
    from edgeflare.repair import Variant, train_campaign
    from edgeflare.reports import trained_document

    with progress_display() as progress:
        found = train_campaign(
            campaign,
            variant=cast("Variant", variant),
            max_inducing=max_inducing,
            out=out,
            search=search,
            ask=ask,
            progress=progress,
        )
    print_result(json, found.to_json, lambda: trained_document(found))
    if not json:
        command = ["edgeflare", "run", "...", "--repair", found.path]
        echo_err(f"\nUse it: {shlex.join(command)}")
