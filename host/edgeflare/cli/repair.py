"""``repair``: what to deploy in place of a model that deviates."""

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.groups import PluginGroup, add_analysis
from edgeflare.cli.options import CampaignFolder, Json
from edgeflare.cli.terminal import with_exit_codes

app = typer.Typer(
    cls=PluginGroup,
    no_args_is_help=True,
    help="Find what to deploy in place of a model that deviates, judged by searching again.",
)
for _name in ("recipes", "train", "abstain"):
    add_analysis(app, _name)


@app.command()
@with_exit_codes
def examples(
    campaign: CampaignFolder,
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    json: Json = False,
) -> None:
    """Write seed and triggering inputs with the original's answers, to fine-tune a model with."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import Text, write_fine_tuning

    found = write_fine_tuning(campaign, folder)
    text = (
        f"{found.inputs:,} inputs, of which {found.triggering:,} are triggering, in {found.folder}: "
        "examples.csv names each file and what the original answers to it"
    )
    print_result(json, found, lambda: [Text(text)])
