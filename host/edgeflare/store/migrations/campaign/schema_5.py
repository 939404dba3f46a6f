"""Transcripts: a model's pieces of text, and the signal-to-noise ratio of audio."""

from alembic import op
from sqlalchemy import JSON, Column, Double

revision = "5"
down_revision = None


def upgrade() -> None:
    """Add the columns; they are null in campaigns of images."""
    for table, name in (
        ("seed_answers", "original_pieces"),
        ("seed_answers", "deployed_pieces"),
        ("outcomes", "original_pieces"),
        ("outcomes", "deployed_pieces"),
        ("replays", "deployed_pieces"),
    ):
        op.add_column(table, Column(name, JSON))
    op.add_column("outcomes", Column("snr_db", Double))
