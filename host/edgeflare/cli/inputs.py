"""``inputs``: which preprocessing the models were made for."""

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.options import Json, command_with, typed
from edgeflare.errors import UsageError

InputsCommand = command_with(
    *("input", "original_input", "deployed_input", "output", "original_output"),
    *("deployed_output", "output_name", "original_output_name", "deployed_output_name"),
    *("input_name", "original_input_name", "deployed_input_name", "fixed_inputs"),
    *("original_fixed_inputs", "deployed_fixed_inputs"),
    *("runtime_option", "resize", "labels", "device", "inventory", "python", "seed", "task"),
)
_TASKS = ("auto", "classification", "embedding")


def inputs(
    context: typer.Context,
    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", help="The original model.")],
    deployed: Annotated[Path, typer.Argument(metavar="DEPLOYED", help="The deployed model.")],
    seeds: Annotated[Path, typer.Argument(metavar="SEEDS", help="A folder of images, or an .npz.")],
    limit: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="How many seeds, chosen at random from the first 1,000."
        ),
    ] = 50,
    json: Json = False,
) -> None:
    """Find how images enter both models: colours, scaling, size, layout and orientation."""
    from edgeflare import config_from
    from edgeflare.campaign import find_inputs
    from edgeflare.cli.display.inputs import inputs_document
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask

    stated = typed(context.obj)
    task = stated.values.get("task", "auto")
    if task not in _TASKS:  # of others the settings would ask for what this command doesn't take
        raise UsageError(
            "the preprocessing can be found of models that classify images or embed them: leave "
            f"--task {task} out, or state one of {', '.join(_TASKS)}"
        )
    for table, path in (("original", original), ("deployed", deployed), ("seeds", seeds)):
        stated.values.setdefault(table, {})["path"] = path
    config = config_from(stated.values, "inputs", stated.flags)
    with progress_display() as progress:
        found = find_inputs(config, seeds=limit, ask=ask, progress=progress)
    print_result(json, found.to_json, lambda: inputs_document(found))
