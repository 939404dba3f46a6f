"""Corpora of audio."""

from alembic import op
from sqlalchemy import Column, Integer

revision = "2"
down_revision = None


def upgrade() -> None:
    """Add the sampling rate; it is null in corpora of images."""
    op.add_column("corpus", Column("rate", Integer))
