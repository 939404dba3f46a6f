"""The survey: inputs far from the seeds, and what references answer to them."""

from alembic import op
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)

revision = "6"
down_revision = "5"

_NAME = String(700)
_SHORT_NAME = String(200)


def upgrade() -> None:
    """Add the tables; they are empty in campaigns that had no survey."""
    op.create_table(
        "surveyed_seeds",
        Column("position", Integer, primary_key=True),
        Column("replica", _SHORT_NAME, nullable=False),
        Column("seed", Integer, ForeignKey("seeds.position"), nullable=False),
        Column("phase", String(16), nullable=False),
        Column("round", Integer, nullable=False),
        Column("survey_queries", Integer, nullable=False),
        Column("confirmation_queries", Integer, nullable=False),
        Column("host_only_queries", Integer, nullable=False),
        Column("device_seconds", Double, nullable=False),
        Column("device_name", _NAME, nullable=False),
        Column("detail", Text, nullable=False),
        UniqueConstraint("replica", "seed", "phase", "round"),
    )
    op.create_table(
        "survey_answers",
        Column("position", Integer, primary_key=True),
        Column("replica", _SHORT_NAME, nullable=False),
        Column("seed", Integer, ForeignKey("seeds.position"), nullable=False),
        Column("phase", String(16), nullable=False),
        Column("number", Integer, nullable=False),
        Column("family", String(100), nullable=False),
        Column("severity", Integer, nullable=False),
        Column("params", JSON, nullable=False),
        Column("sample_digest", String(64), nullable=False),
        Column("original", LargeBinary, nullable=False),
        Column("original_pieces", JSON),
        Column("deployed", LargeBinary),
        Column("deployed_pieces", JSON),
        Column("original_margin", Double),
        Column("deployed_margin", Double),
        Column("total_variation", Double),
        Column("decision", String(16), nullable=False),
        Column("confident_deviation", Boolean, nullable=False),
        Column("confirmed", Integer, nullable=False),
        Column("device_name", _NAME, nullable=False),
        Column("detail", Text, nullable=False),
        UniqueConstraint("replica", "seed", "phase", "number"),
    )
    op.create_table(
        "reference_answers",
        Column("position", Integer, primary_key=True),
        Column("reference", _SHORT_NAME, nullable=False),
        Column("seed", Integer, ForeignKey("seeds.position"), nullable=False),
        Column("phase", String(16), nullable=False),
        Column("number", Integer, nullable=False),
        Column("deployed", LargeBinary, nullable=False),
        Column("deployed_pieces", JSON),
        Column("total_variation", Double),
        Column("decision", String(16), nullable=False),
        UniqueConstraint("reference", "seed", "phase", "number"),
    )
