"""``explain``: what the findings of a campaign come of."""

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.options import FILES, Json, command_with, typed

ExplainCommand = command_with(
    *("original", "deployed", "patience", "python", "inventory", "confirmations"),
    original={"help": "The original model, where it has moved."},
    deployed={"help": "The deployed model, where it has moved."},
)


def explain(
    context: typer.Context,
    campaign: Annotated[Path, typer.Argument(help="A campaign's folder.")],
    float_model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The model before it was compressed, in the deployed model's format.",
            rich_help_panel=FILES,
        ),
    ] = None,
    device_queries: Annotated[
        int, typer.Option(min=1, metavar="N", help="Send devices N inputs at most in all.")
    ] = 2000,
    json: Json = False,
) -> None:
    """Tell what each finding comes of: compression, kernels, hardware, preprocessing or others."""
    from edgeflare import replay_base, replay_config
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask
    from edgeflare.explanation import explain_campaign
    from edgeflare.reports import explanation_document

    stated = typed(context.obj)
    config = replay_config(replay_base(campaign), stated.values, stated.flags)
    with progress_display() as progress:
        found = explain_campaign(
            campaign,
            config,
            float_model=float_model,
            device_queries=device_queries,
            ask=ask,
            progress=progress,
        )
    print_result(json, found.to_json, lambda: explanation_document(found))
