"""``inputs``: which preprocessing the models were made for."""

from typing import TYPE_CHECKING

from edgeflare.cli.options import Json
from edgeflare.errors import UsageError

if TYPE_CHECKING:
    from edgeflare.cli.settings import InputsSettings

_TASKS = ("auto", "classification", "embedding")


def inputs(settings: "InputsSettings", json: Json = False) -> None:
    """Find how images enter both models: colours, scaling, size, layout and orientation."""
    from edgeflare import config_from
    from edgeflare.campaign import find_inputs
    from edgeflare.cli.display.inputs import inputs_document
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask

    stated = settings.typed
    task = stated.values.get("task", "auto")
    if task not in _TASKS:  # of others the settings would ask for what this command doesn't take
        raise UsageError(
            "the preprocessing can be found of models that classify images or embed them: leave "
            f"--task {task} out, or state one of {', '.join(_TASKS)}"
        )
    for table in ("original", "deployed", "seeds"):
        stated.values.setdefault(table, {})["path"] = getattr(settings, table)
    config = config_from(stated.values, "inputs", stated.flags)
    with progress_display() as progress:
        found = find_inputs(config, seeds=settings.limit, ask=ask, progress=progress)
    print_result(json, found.to_json, lambda: inputs_document(found))
