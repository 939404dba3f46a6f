"""``python -m edgeflare.cli``."""

from edgeflare.cli import main

main()
