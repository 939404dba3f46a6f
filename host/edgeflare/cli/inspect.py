"""``inspect coverage``: what a campaign's inputs exercise within the original model."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.options import Json
from edgeflare.cli.terminal import echo_err, with_exit_codes

app = typer.Typer(
    no_args_is_help=True,
    help="Look into the original model: what a campaign's inputs exercise in it.",
)


@app.callback()
def _group() -> None:
    """Make it a group, though it has one command."""


@app.command()
@with_exit_codes
def coverage(
    campaign: Annotated[Path, typer.Argument(help="A campaign's folder.")],
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Inputs that the others are compared with, such as training inputs: a folder of images or "
            "audio, one file, or an .npz; by default the campaign's seeds.",
        ),
    ] = None,
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Measure by this criterion alone, such as KMNC; may be repeated. By default by all.",
        ),
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TENSOR",
            help="A tensor of the original that counts as a layer; may be repeated. By default all outputs "
            "of activation functions, and the last but one for LSC and DSC.",
        ),
    ] = None,
    original: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The original model, where it has moved.")
    ] = None,
    resize: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="For images in --profile of another size, as of run; by default the campaign's.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Measure which share of the original's units the seeds, triggers and survey findings exercise."""
    from edgeflare.campaign import Stage, Step
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.inspection import coverage_of_campaign
    from edgeflare.reports import coverage_document

    with progress_display() as progress:

        def tell(what: str, done: int, total: int | None) -> None:
            progress(Step(done) if done else Stage("coverage", what, total))

        found = coverage_of_campaign(
            campaign,
            original=original,
            profile=profile,
            resize=resize,
            criteria=criterion or (),
            layers=layer or (),
            tell=tell,
        )
    print_result(json, found.to_json, lambda: coverage_document(found))
    if not json:
        echo_err(f"\nA page with it: {shlex.join(['edgeflare', 'report', str(campaign)])}")
