"""``explain`` and ``shrink``: what the findings of a campaign come of, and inputs nearer to the seeds."""

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from edgeflare.cli.options import FILES, CampaignFolder, Json, command_with, typed

_Found = TypeVar("_Found")
_FLAGS = ("original", "deployed", "patience", "python", "inventory", "confirmations")
_HELP: dict[str, Any] = {
    which: {"help": f"The {which} model, where it has moved."} for which in ("original", "deployed")
}
ExplainCommand = command_with(
    *(*_FLAGS, "device"),
    device={"help": "Other devices than the campaign's; several are compared with each other."},
    **_HELP,
)
ShrinkCommand = command_with(*_FLAGS, "workers", **_HELP)


def explain(
    context: typer.Context,
    campaign: CampaignFolder,
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
    node_data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what each layer changes, as node data for Model Explorer.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Tell what each finding comes of: compression, kernels, hardware, preprocessing or others."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare.explanation import explain_campaign
    from edgeflare.reports import explanation_document, explanation_json, write_node_data

    limits: dict[str, Any] = {"float_model": float_model, "device_queries": device_queries}
    found = _on_findings(context, campaign, partial(explain_campaign, **limits))
    print_result(
        json,
        lambda: explanation_json(found) or {},
        lambda: explanation_document(found, campaign),
    )
    if node_data is not None:
        write_node_data(found, node_data)


def shrink(
    context: typer.Context,
    campaign: CampaignFolder,
    device_budget: Annotated[
        int, typer.Option(min=1, metavar="N", help="Device queries for each finding, at most.")
    ] = 20,
    json: Json = False,
) -> None:
    """Move each triggering input as near to its seed as it deviates; the campaign's own stay."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import echo_err
    from edgeflare.explanation import shrink_campaign
    from edgeflare.reports import shrunk_document

    run = partial(shrink_campaign, device_budget=device_budget)
    found = _on_findings(context, campaign, run)
    print_result(json, found, lambda: shrunk_document(found))
    if not json:
        echo_err(f"\nA page of them: {shlex.join(['edgeflare', 'report', found.folder])}")


def _on_findings(context: typer.Context, campaign: Path, run: Callable[..., _Found]) -> _Found:
    """Run it on a campaign, with the models and devices as stored or typed, and show progress."""
    from edgeflare import replay_base, replay_config
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.terminal import ask

    stated = typed(context.obj)
    each = {"fleet": {"mode": "replicate"}} if len(stated.values.get("devices", ())) > 1 else {}
    config = replay_config(replay_base(campaign), {**stated.values, **each}, stated.flags)
    with progress_display() as progress:
        return run(campaign, config, ask=ask, progress=progress)
