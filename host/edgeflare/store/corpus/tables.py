"""The tables of a trigger corpus; any change here is a new SCHEMA_VERSION."""

from sqlalchemy import (
    JSON,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

from edgeflare.store.corpus.records import CorpusCampaign, CorpusEntry, DeviceAnswer
from edgeflare.store.mapped import table_of

SCHEMA_VERSION = 2

metadata = MetaData()

_Name = String(700)
_Time = String(40)


def _entry() -> Column[int]:
    return Column("entry", ForeignKey(entries.c.position, ondelete="CASCADE"), nullable=False)


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

campaigns = table_of(CorpusCampaign, "campaigns", metadata, "id")

entries = table_of(CorpusEntry, "entries", metadata, "sample")
entries.dialect_options["sqlite"]["autoincrement"] = True
Index(
    "entries_of_a_pair",
    *(entries.c[one] for one in ("seed_sample", "original_label", "deployed_label")),
)

sightings = Table(
    "sightings",
    metadata,
    Column("position", Integer, primary_key=True),
    _entry(),
    Column("campaign", String(32), nullable=False),
    Column("model", _Name, nullable=False),
    Column("device", _Name, nullable=False),
    Column("seen_at", _Time, nullable=False),
    UniqueConstraint("entry", "campaign", "model", "device"),
)

looks = table_of(
    DeviceAnswer,
    "looks",
    metadata,
    "entry model device",
    entry=_entry(),
    sample=None,
    since=Column("since", _Time, nullable=False),
)
