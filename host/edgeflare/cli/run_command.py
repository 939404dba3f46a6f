# ruff: noqa: ARG001 - the parameters are what the user may type; `context` has them all
"""``run``: its flags and their help."""

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.options import (
    DEVICES,
    DeviceQueries,
    Devices,
    FleetMode,
    Handover,
    Inventory,
    Json,
    Out,
    Patience,
    Python,
    TotalQueries,
)
from edgeflare.cli.pair_options import (
    FILES,
    Cut,
    Decoder,
    DeployedInput,
    DeployedOutput,
    DeployedOutputName,
    Input,
    Labels,
    Limit,
    Original,
    OriginalInput,
    OriginalOutput,
    OriginalOutputName,
    Output,
    OutputName,
    Pairs,
    ResampleAudio,
    Resize,
    RuntimeOption,
    Seeds,
)
from edgeflare.cli.run_flags import config_of
from edgeflare.cli.running import run_config
from edgeflare.cli.search_options import (
    SEARCH,
    AllowDisagreement,
    Control,
    ControlModel,
    Crossing,
    DeviceBudget,
    MarginFloor,
    MaxHostQueries,
    MaxL2,
    MaxLinf,
    MaxQueries,
    MinSsim,
    OneTrip,
    Oracle,
    OriginalTimeout,
    RandomSeed,
    Timeout,
    Tolerance,
)


def run(
    context: typer.Context,
    campaign: Annotated[
        Path | None, typer.Argument(help="A campaign.toml (edgeflare init writes one).")
    ] = None,
    original: Original = None,
    deployed: Annotated[
        Path | None, typer.Option(help="The deployed model.", rich_help_panel=FILES)
    ] = None,
    seeds: Seeds = None,
    input_: Input = None,
    original_input: OriginalInput = None,
    deployed_input: DeployedInput = None,
    output: Output = None,
    original_output: OriginalOutput = None,
    deployed_output: DeployedOutput = None,
    output_name: OutputName = None,
    original_output_name: OriginalOutputName = None,
    deployed_output_name: DeployedOutputName = None,
    decoder: Decoder = None,
    runtime_option: RuntimeOption = None,
    resize: Resize = None,
    cut: Cut = None,
    resample_audio: ResampleAudio = None,
    labels: Labels = None,
    limit: Limit = None,
    device: Devices = None,
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
    python: Python = None,
    inventory: Inventory = None,
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
    max_queries: MaxQueries = None,
    max_host_queries: MaxHostQueries = None,
    timeout: Timeout = None,
    original_timeout: OriginalTimeout = None,
    oracle: Oracle = None,
    tolerance: Tolerance = None,
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
    seed: RandomSeed = None,
    control: Control = None,
    control_model: ControlModel = None,
    allow_disagreement: AllowDisagreement = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Find, for each seed input, an input on which the device's model decides differently."""
    run_config(config_of(context.params), json)
