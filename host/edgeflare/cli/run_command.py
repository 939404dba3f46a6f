# ruff: noqa: ARG001 - the parameters are what the user may type; `context` has them all
"""``run``: its flags and their help."""

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.options import (
    DEVICES,
    DeviceQueries,
    FleetMode,
    Handover,
    Json,
    Out,
    Patience,
    TotalQueries,
)
from edgeflare.cli.run_flags import config_of
from edgeflare.cli.running import run_config
from edgeflare.cli.search_options import (
    SEARCH,
    Control,
    ControlModel,
    Crossing,
    DeviceBudget,
    MarginFloor,
    MaxHostQueries,
    MaxL2,
    MaxLinf,
    MinSsim,
    OneTrip,
)

_FILES = "Models and seeds"

Pairs = list[str] | None


def run(
    context: typer.Context,
    campaign: Annotated[
        Path | None, typer.Argument(help="A campaign.toml (edgeflare init writes one).")
    ] = None,
    original: Annotated[
        Path | None,
        typer.Option(help="The original model: .onnx or .tflite.", rich_help_panel=_FILES),
    ] = None,
    deployed: Annotated[
        Path | None, typer.Option(help="The deployed model.", rich_help_panel=_FILES)
    ] = None,
    seeds: Annotated[
        Path | None,
        typer.Option(help="Folder of images, an image, or an .npz.", rich_help_panel=_FILES),
    ] = None,
    input_: Annotated[
        Pairs,
        typer.Option(
            "--input",
            metavar="KEY=VALUE",
            help="What the files don't tell of both models' inputs: scale=1/255, mean=R,G,B, "
            "std=R,G,B, color=BGR, layout=CHW, size=H,W, resize=bilinear. May be repeated.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    original_input: Annotated[
        Pairs,
        typer.Option(
            metavar="KEY=VALUE", help="The same for the original alone.", rich_help_panel=_FILES
        ),
    ] = None,
    deployed_input: Annotated[
        Pairs,
        typer.Option(
            metavar="KEY=VALUE",
            help="The same for the deployed model alone.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            help="Both models' outputs: auto, probabilities or logits.", rich_help_panel=_FILES
        ),
    ] = None,
    original_output: Annotated[
        str | None,
        typer.Option(help="The same for the original alone.", rich_help_panel=_FILES),
    ] = None,
    deployed_output: Annotated[
        str | None,
        typer.Option(
            help="The same for the deployed model alone; label: it returns a class index and no scores.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    runtime_option: Annotated[
        Pairs,
        typer.Option(
            metavar="KEY=VALUE",
            help="For the deployed model's runtime: threads=4, delegate=false, kernels=reference.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    resize: Annotated[
        str | None,
        typer.Option(
            help="For seeds of another size: nearest, bilinear, area, bicubic or crop.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Maps class folders to class numbers (JSON, TOML, text).", rich_help_panel=_FILES
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first so many seeds.", rich_help_panel=_FILES),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DEVICE",
            help="local, an inventory name, ssh://user@host:port or adb://SERIAL. Repeat it for a fleet.",
            rich_help_panel=DEVICES,
        ),
    ] = None,
    fleet: FleetMode = None,
    allow_mixed: Annotated[
        bool | None,
        typer.Option(
            "--allow-mixed",
            help="Let devices that differ share the seeds; what is found then depends on which "
            "device took which seed.",
            rich_help_panel=DEVICES,
        ),
    ] = None,
    device_queries: DeviceQueries = None,
    total_queries: TotalQueries = None,
    handover: Handover = None,
    patience: Patience = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Searches in flight on each device; by default as many as keep it busy. Doesn't "
            "change what is found.",
            rich_help_panel=DEVICES,
        ),
    ] = None,
    one_trip: OneTrip = None,
    python: Annotated[
        str | None,
        typer.Option(
            help="The devices' Python command; default python3 there.", rich_help_panel=DEVICES
        ),
    ] = None,
    inventory: Annotated[
        Path | None, typer.Option(help="The device inventory (TOML).", rich_help_panel=DEVICES)
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The search strategy: boundary (the default: along the original's decision boundary, with "
            "the fewest device queries), dflare, dflare-d (it without state tracing), dflare-r (it with "
            "operators chosen uniformly), diffchaser (a genetic search) or none (nothing is searched: only "
            "the seeds themselves are compared).",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of dflare, dflare-d and dflare-r: reference (its authors' code; the default) or text "
            "(the paper's words). Short for --option variant=NAME; without --strategy it means dflare.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    option: Annotated[
        Pairs,
        typer.Option(
            metavar="KEY=VALUE",
            help="For the strategy; may be repeated. dflare, dflare-d, dflare-r: variant=reference, "
            "acceptance=not-lower, change or none, selection=metropolis-hastings, rank or uniform, "
            "overflow=clip or wrap, pool=table-3 or reference, state_tracing=false, delta=1e-3, "
            "threshold=0.5, epsilon=1e-7. diffchaser: population=1000, "
            "fitness=k-uncertainty, basic or targeted, k=2, target=3, mutation_rate=0.5, batch=25. "
            "boundary: crossing=auto, least-l2, line, mutants or natural, device_budget=20, effort=64, "
            "candidates=4, tied_classes=2 or 3, max_l2=2, max_linf=30, min_ssim=0.9.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    crossing: Crossing = None,
    device_budget: DeviceBudget = None,
    max_l2: MaxL2 = None,
    max_linf: MaxLinf = None,
    min_ssim: MinSsim = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A mutation operator; may be repeated. Default: those of the strategy's variant.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    max_queries: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Search queries for each seed; 0: no limit.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    max_host_queries: MaxHostQueries = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Seconds for each seed; 0: no limit.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    margin_floor: MarginFloor = None,
    confirmations: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="How often a trigger is sent again.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Fixes all randomness.", rich_help_panel=SEARCH)
    ] = None,
    control: Control = None,
    control_model: ControlModel = None,
    allow_disagreement: Annotated[
        bool | None,
        typer.Option(
            "--allow-disagreement",
            help="Go on though the pair looks wrong.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Find, for each seed input, an input on which the device's model decides differently."""
    run_config(config_of(context.params), json)
