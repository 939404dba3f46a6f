"""``inspect``: what happens within a campaign's original."""

import typer

from edgeflare.cli.groups import PluginGroup, add_analysis

app = typer.Typer(
    cls=PluginGroup,
    no_args_is_help=True,
    help="Look into the original model: what a campaign's inputs exercise in it, which seeds come first, which "
    "classes it confuses and deployment treats otherwise, and which units go with deviation.",
)
for _name in ("coverage", "importance", "prioritise", "classes", "units"):
    add_analysis(app, _name)
