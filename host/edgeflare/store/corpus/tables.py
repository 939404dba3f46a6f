"""The tables of a trigger corpus; any change here is a new SCHEMA_VERSION."""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

SCHEMA_VERSION = 2

metadata = MetaData()

_Digest = String(64)
_Name = String(700)
_Time = String(40)

about = Table(
    "corpus",
    metadata,
    Column("schema_version", Integer, nullable=False),
    Column("program_version", String(64), nullable=False),
    Column("id", String(32), nullable=False),
    Column("created_at", _Time, nullable=False),
    Column("per_pair", Integer, nullable=False),
    Column("shape", JSON),
    Column("classes", Integer),
    Column("rate", Integer),
)

campaigns = Table(
    "campaigns",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("model", _Name, nullable=False),
    Column("original_sha256", _Digest, nullable=False),
    Column("deployed_sha256", _Digest, nullable=False),
    Column("added_at", _Time, nullable=False),
    Column("triggers", Integer, nullable=False),
    Column("near", Integer, nullable=False),
)

entries = Table(
    "entries",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("sample_digest", _Digest, key="sample", nullable=False, unique=True),
    Column("seed_digest", _Digest, key="seed_sample", nullable=False),
    Column("seed_id", _Name, nullable=False),
    Column("seed_label", Integer),
    Column("status", String(16), nullable=False),
    Column("original_label", Integer, nullable=False),
    Column("deployed_label", Integer, nullable=False),
    Column("original_margin", Double),
    Column("deployed_margin", Double),
    Column("l2", Double, nullable=False),
    Column("linf", Integer, nullable=False),
    Column("original_sha256", _Digest, nullable=False),
    Column("deployed_sha256", _Digest, nullable=False),
    Column("model", _Name, nullable=False),
    Column("device", _Name, nullable=False),
    Column("campaign", String(32), nullable=False),
    Column("found_at", _Time, nullable=False),
    Column("deviated_at", _Time, nullable=False),
    Column("agreeing_since", _Time),
    Index("entries_of_a_pair", "seed_sample", "original_label", "deployed_label"),
    sqlite_autoincrement=True,
)

sightings = Table(
    "sightings",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("entry", ForeignKey(entries.c.position, ondelete="CASCADE"), nullable=False),
    Column("campaign", String(32), nullable=False),
    Column("model", _Name, nullable=False),
    Column("device", _Name, nullable=False),
    Column("seen_at", _Time, nullable=False),
    UniqueConstraint("entry", "campaign", "model", "device"),
)

looks = Table(
    "looks",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("entry", ForeignKey(entries.c.position, ondelete="CASCADE"), nullable=False),
    Column("model", _Name, nullable=False),
    Column("device", _Name, nullable=False),
    Column("deployed_sha256", _Digest, nullable=False),
    Column("deviated", Boolean, nullable=False),
    Column("original_label", Integer),
    Column("deployed_label", Integer),
    Column("looked_at", _Time, nullable=False),
    Column("since", _Time, nullable=False),
    Column("replay", String(32), nullable=False),
    UniqueConstraint("entry", "model", "device"),
)
