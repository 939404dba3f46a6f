"""``demo``, ``run``, ``init``, ``show`` and ``export``."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from edgeflare.cli.guard import say

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder to make for the campaign; by default under campaigns/."),
]
Campaign = Annotated[Path, typer.Argument(help="A campaign's folder.")]


def demo(
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seed images.")] = 20,
    device: Annotated[str, typer.Option(help="local, an inventory name or ssh://...")] = "local",
    seed: Annotated[int, typer.Option(help="Fixes all randomness.")] = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Search on real MNIST digits with a real int8 model; no device needed."""
    from edgeflare import demo_config

    _run(demo_config(seeds=seeds, device=device, out=out, campaign_seed=seed), json)


def run(
    campaign: Annotated[
        Path | None, typer.Argument(help="A campaign.toml (edgeflare init writes one).")
    ] = None,
    original: Annotated[
        Path | None, typer.Option(help="The original model: .onnx or .tflite.")
    ] = None,
    deployed: Annotated[Path | None, typer.Option(help="The deployed model.")] = None,
    seeds: Annotated[
        Path | None, typer.Option(help="Folder of images, an image, or an .npz.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="local, an inventory name, or ssh://user@host:port.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="The device's Python command; default python3 there.")
    ] = None,
    inventory: Annotated[Path | None, typer.Option(help="The device inventory (TOML).")] = None,
    out: Out = None,
    input_: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="KEY=VALUE",
            help="What the files don't tell of both models' inputs: scale=1/255, mean=R,G,B, "
            "std=R,G,B, color=BGR, layout=CHW, size=H,W, resize=bilinear. May be repeated.",
        ),
    ] = None,
    original_input: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="The same for the original alone."),
    ] = None,
    deployed_input: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="The same for the deployed model alone."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Both models' outputs: auto, probabilities or logits.")
    ] = None,
    runtime_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="For the deployed model's runtime: threads=4, delegate=false, kernels=reference.",
        ),
    ] = None,
    resize: Annotated[
        str | None,
        typer.Option(help="For seeds of another size: nearest, bilinear, area, bicubic or crop."),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Maps class folders to class numbers (JSON, TOML, text).")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many seeds.")] = None,
    strategy: Annotated[str | None, typer.Option(help="The search strategy: dflare.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="For the strategy: delta=1e-3, threshold=0.5."),
    ] = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(help="A mutation operator; may be repeated. Default: the paper's six."),
    ] = None,
    max_queries: Annotated[
        int | None, typer.Option(min=0, help="Search queries for each seed; 0: no limit.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds for each seed; 0: no limit.")
    ] = None,
    confirmations: Annotated[
        int | None, typer.Option(min=1, help="How often a trigger is sent again.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Searches in flight; doesn't change results.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Fixes all randomness.")] = None,
    allow_disagreement: Annotated[
        bool | None,
        typer.Option("--allow-disagreement", help="Go on though the pair looks wrong."),
    ] = None,
    json: Json = False,
) -> None:
    """Find, for each seed input, an input on which the device's model decides differently."""
    from edgeflare import UsageError, config_from, load_config
    from edgeflare.cli.parse import pairs, without_none

    both = pairs(input_ or [], "--input")
    flags: dict[str, Any] = without_none(
        {
            "original": {
                "path": original,
                "input": both | pairs(original_input or [], "--original-input"),
                "output": output,
            },
            "deployed": {
                "path": deployed,
                "input": both | pairs(deployed_input or [], "--deployed-input"),
                "output": output,
                "options": pairs(runtime_option or [], "--runtime-option"),
            },
            "seeds": {"path": seeds, "resize": resize, "labels": labels, "limit": limit},
            "search": {
                "strategy": strategy,
                "options": pairs(option or [], "--option"),
                "operators": operator,
                "max_queries": max_queries,
                "timeout_s": timeout,
                "confirmations": confirmations,
                "seed": seed,
            },
            "device": device,
            "python": python,
            "inventory": inventory,
            "out": out,
            "concurrency": concurrency,
            "allow_disagreement": allow_disagreement,
        }
    )
    if campaign is not None:
        _run(load_config(campaign, flags), json)
        return
    missing = [
        flag
        for flag, given in (("--original", original), ("--deployed", deployed), ("--seeds", seeds))
        if given is None
    ]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} missing: state all three, or give a campaign.toml "
            "(`edgeflare init` writes one)"
        )
    _run(config_from(flags, "edgeflare run"), json)


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("campaign.toml"),
) -> None:
    """Write a commented campaign.toml."""
    from edgeflare import write_starter

    write_starter(path)
    say(f"wrote {path}; edit it, then: edgeflare run {path}")


def show(campaign: Campaign, json: Json = False) -> None:
    """Show what a campaign found: success rate, queries, time, label pairs."""
    from edgeflare import summarize
    from edgeflare.cli.tables import print_summary

    print_summary(summarize(campaign), json)


def export(
    campaign: Campaign,
    folder: Annotated[Path, typer.Argument(help="The folder to make.")],
    json: Json = False,
) -> None:
    """Write pictures of each seed, trigger and difference, and a JSON line for each."""
    from edgeflare import export_campaign
    from edgeflare.cli.tables import print_export

    print_export(export_campaign(campaign, folder), json)


def _run(config: Any, json: bool) -> None:
    from edgeflare import run_campaign, summarize
    from edgeflare.cli.prompt import ask
    from edgeflare.cli.tables import print_summary
    from edgeflare.cli.watch import watching

    with watching() as progress:
        folder = run_campaign(config, ask=ask, progress=progress)
    print_summary(summarize(folder), json)
    if not json:
        say(f"\nEverything is in {folder}")
        command = ["edgeflare", "export", str(folder), f"{folder}-pictures"]
        say(f"Pictures: {shlex.join(command)}")
