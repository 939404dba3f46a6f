"""The tables of a campaign's database; any change here is a new SCHEMA_VERSION."""

from typing import get_args

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from edgeflare.devices.telemetry import DeviceMinute
from edgeflare.store import records
from edgeflare.store.mapped import Name, ShortName, table_of
from edgeflare.types import Skipped

SCHEMA_VERSION = 8

metadata = MetaData()

_Name, _ShortName = get_args(Name)[1], get_args(ShortName)[1]


meta = Table(
    "meta",
    metadata,
    Column("schema_version", Integer, nullable=False),
    Column("program_version", String(64), nullable=False),
)

campaign = Table(
    "campaign",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("created_at", String(40), nullable=False),
    Column("config", JSON, nullable=False),
    Column("models", JSON, nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("name", _ShortName, primary_key=True),
    Column("value", JSON, nullable=False),
)

environments = table_of(records.EnvironmentRecord, "environments", metadata, "digest")

devices = table_of(records.DeviceRecord, "devices", metadata, "digest")

seeds = table_of(
    records.SeedRecord,
    "seeds",
    metadata,
    "id",
    position=Column("position", Integer, primary_key=True, autoincrement=False),
    outputs=None,
)

seed_answers = table_of(records.SeedAnswer, "seed_answers", metadata, "replica seed")

skipped = table_of(Skipped, "skipped", metadata)

notices = Table(
    "notices",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("text", Text, nullable=False),
)

outcomes = table_of(
    records.OutcomeRecord,
    "outcomes",
    metadata,
    "replica seed",
    "device device_name, deployed_label original_margin deployed_margin, mutations detail",
    device=ForeignKey(devices.c.digest),
    environment=ForeignKey(environments.c.digest),
)

surveyed_seeds = table_of(
    records.SurveyedSeed, "surveyed_seeds", metadata, "replica seed phase round"
)

survey_answers = table_of(
    records.SurveyRecord,
    "survey_answers",
    metadata,
    "replica seed phase number",
    "deployed original_margin deployed_margin, total_variation decision, confirmed device_name detail",
)

reference_answers = table_of(
    records.ReferenceAnswer,
    "reference_answers",
    metadata,
    "reference seed phase number",
    "total_variation decision",
)

replays = table_of(records.ReplayRecord, "replays", metadata, "replica seed on_device")

telemetry = table_of(
    DeviceMinute,
    "telemetry",
    metadata,
    device=Column("device", _Name, nullable=False),
    latencies=Column("latencies", JSON, nullable=False),
    rss_bytes=Column("rss_bytes", BigInteger),
)

unit_scores = Table(
    "unit_scores",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("layer", _Name, nullable=False),
    Column("unit", Integer),
    Column("hypothesis", _Name, nullable=False),
    Column("measure", String(32), nullable=False),
    Column("score", Double, nullable=False),
    Column("low", Double, nullable=False),
    Column("high", Double, nullable=False),
    Column("records", Integer, nullable=False),
)

analyses = Table(
    "analyses",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("name", _ShortName, nullable=False),
    Column("number", Integer, nullable=False),
    Column("version", String(64), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("result", JSON(none_as_null=True)),
    Column("made", String(40)),
    UniqueConstraint("name", "number"),
)

analysis_parts = Table(
    "analysis_parts",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("analysis", ForeignKey(analyses.c.position), nullable=False),
    Column("name", _Name, nullable=False),
    Column("value", JSON, nullable=False),
    UniqueConstraint("analysis", "name"),
)
