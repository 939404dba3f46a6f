"""Scores of units: how much each unit of the original goes with a hypothesis."""

from alembic import op
from sqlalchemy import Column, Double, Integer, String

revision = "7"
down_revision = "6"

_NAME = String(700)


def upgrade() -> None:
    """Add the table; it is empty in campaigns whose units were not inspected."""
    op.create_table(
        "unit_scores",
        Column("position", Integer, primary_key=True),
        Column("layer", _NAME, nullable=False),
        Column("unit", Integer),
        Column("hypothesis", _NAME, nullable=False),
        Column("measure", String(32), nullable=False),
        Column("score", Double, nullable=False),
        Column("low", Double, nullable=False),
        Column("high", Double, nullable=False),
        Column("records", Integer, nullable=False),
    )
