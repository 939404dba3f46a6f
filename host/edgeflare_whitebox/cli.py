"""``inspect``: what happens within a campaign's original."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeflare.cli.options import CampaignFolder, Json
from edgeflare.cli.terminal import echo_err, with_exit_codes

if TYPE_CHECKING:
    from edgeflare_whitebox import Tell

app = typer.Typer(
    no_args_is_help=True,
    help="Look into the original model: what a campaign's inputs exercise in it, which seeds come first, which "
    "classes it confuses and deployment treats otherwise, and which units go with deviation.",
)


_Profile = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Inputs that the others are compared with, such as training inputs: a folder of images or "
        "audio, one file, or an .npz; by default the campaign's seeds.",
    ),
]


def _layers(by_default: str) -> Any:
    """Return the option that names the layers."""
    return typer.Option(
        metavar="TENSOR",
        help=f"A tensor of the original that counts as a layer; may be repeated. By default {by_default}.",
    )


_Original = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The original model, where it has moved.")
]
_Resize = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="For images in --profile of another size, as of run; by default the campaign's.",
    ),
]


@app.command()
@with_exit_codes
def coverage(
    campaign: CampaignFolder,
    profile: _Profile = None,
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Measure by this criterion alone, such as KMNC; may be repeated. By default by all.",
        ),
    ] = None,
    layer: Annotated[
        list[str] | None,
        _layers("all outputs of activation functions, and the last but one for LSC and DSC"),
    ] = None,
    original: _Original = None,
    resize: _Resize = None,
    json: Json = False,
) -> None:
    """Measure which share of the original's units the seeds, triggers and survey findings exercise."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import coverage_document
    from edgeflare_whitebox import coverage_of_campaign

    with _telling("coverage") as tell:
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
    _tell_page(campaign, json=json)


@app.command()
@with_exit_codes
def importance(
    campaign: CampaignFolder,
    units: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Units of each layer that count as important."),
    ] = 6,
    profile: _Profile = None,
    layer: Annotated[list[str] | None, _layers("all outputs of activation functions")] = None,
    original: _Original = None,
    resize: _Resize = None,
    json: Json = False,
) -> None:
    """Find the units that the original's decisions rest on, and what the inputs reach of these."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import importance_document
    from edgeflare_whitebox import importance_of_campaign

    with _telling("importance") as tell:
        found = importance_of_campaign(
            campaign,
            original=original,
            profile=profile,
            resize=resize,
            number=units,
            layers=layer or (),
            tell=tell,
        )
    print_result(json, found.to_json, lambda: importance_document(found))
    _tell_page(campaign, json=json)


@app.command()
@with_exit_codes
def prioritise(
    campaign: CampaignFolder,
    original: _Original = None,
    json: Json = False,
) -> None:
    """Compare orders of the seeds: how early each brings what the campaign found."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import priority_document
    from edgeflare_whitebox import prioritise_campaign

    with _telling("orders") as tell:
        found = prioritise_campaign(campaign, original=original, tell=tell)
    print_result(json, found.to_json, lambda: priority_document(found))
    if not json:
        echo_err("\nA new campaign in such an order: edgeflare run ... --prioritise MEASURE")


@app.command()
@with_exit_codes
def classes(
    campaign: CampaignFolder,
    profile: _Profile = None,
    layer: Annotated[
        list[str] | None,
        _layers("all outputs of convolutions and dense layers, before their activation functions"),
    ] = None,
    class_names: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The classes' names, as of report; by default the campaign's own label mapping.",
        ),
    ] = None,
    original: _Original = None,
    resize: _Resize = None,
    json: Json = False,
) -> None:
    """Find classes that the original confuses, and those that deployment treats otherwise; no device is asked."""
    from edgeflare.analysis import class_namer, load_class_names
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import classes_document
    from edgeflare_whitebox import classes_of_campaign

    names = None if class_names is None else load_class_names(class_names, campaign)
    with _telling("classes") as tell:
        found = classes_of_campaign(
            campaign,
            original=original,
            profile=profile,
            resize=resize,
            layers=layer or (),
            tell=tell,
        )
    print_result(json, found.to_json, lambda: classes_document(found, class_namer(campaign, names)))
    _tell_page(campaign, json=json)


@app.command()
@with_exit_codes
def units(
    campaign: CampaignFolder,
    hypothesis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What units may go with, such as deviates, class:3, classes, family:dim, families, "
            "brightness; may be repeated. By default deviates, and those on a sample alone.",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="pearson, mutual-information or f1; may be repeated. By default all.",
        ),
    ] = None,
    layer: Annotated[list[str] | None, _layers("all outputs of activation functions")] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SET",
            help="seeds, survey or triggers, may be repeated; or all. By default seeds and survey, which were "
            "not searched for.",
        ),
    ] = None,
    original: _Original = None,
    random_seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Draws the order in which inputs are read.")
    ] = 0,
    json: Json = False,
) -> None:
    """Find the units of the original that go with deviation on the device, or with what you name."""
    from edgeflare.campaign import SurveyInputs
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import units_document
    from edgeflare_whitebox import UNIT_INPUTS, UNSELECTED, units_of_campaign

    with _telling("units") as tell:
        found = units_of_campaign(
            campaign,
            original=original,
            hypotheses=hypothesis or (),
            measures=measure or (),
            layers=layer or (),
            inputs=UNIT_INPUTS if inputs == ["all"] else inputs or UNSELECTED,
            remake=lambda store: SurveyInputs(store).sample,
            random_seed=random_seed,
            tell=tell,
        )
    print_result(json, found.to_json, lambda: units_document(found))
    _tell_page(campaign, json=json)


@contextmanager
def _telling(name: str) -> Iterator["Tell"]:
    """Show what is run."""
    from edgeflare.campaign import Stage, Step
    from edgeflare.cli.display.progress import progress_display

    with progress_display() as progress:
        yield lambda what, done, total: progress(Step(done) if done else Stage(name, what, total))


def _tell_page(campaign: Path, *, json: bool) -> None:
    from edgeflare.store import campaign_text

    if not json:
        echo_err(
            f"\nA page with it: {shlex.join(['edgeflare', 'report', campaign_text(campaign)])}"
        )
