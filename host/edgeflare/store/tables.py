"""The tables of a campaign's database; any change here is a new SCHEMA_VERSION."""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = 8

metadata = MetaData()

_Digest = String(64)


def _name(length: int) -> String:
    """Return the type of names, which sort by their bytes in every database."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


_Name = _name(700)
_Pieces = JSON(none_as_null=True)
_ShortName = _name(200)  # two of them and a number fit into one key of any database


def _answer(name: str, *, nullable: bool = True) -> tuple[Column[Any], Column[Any]]:
    """Return the columns of `records.output_columns`."""
    return Column(name, LargeBinary, nullable=nullable), Column(f"{name}_pieces", _Pieces)


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

environments = Table(
    "environments",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("digest", _Digest, nullable=False, unique=True),
    Column("description", JSON, nullable=False),
)

devices = Table(
    "devices",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("digest", _Digest, nullable=False, unique=True),
    Column("name", _Name, nullable=False),
    Column("fingerprint", JSON, nullable=False),
)

seeds = Table(
    "seeds",
    metadata,
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("id", _Name, nullable=False, unique=True),
    Column("label", Integer),
    Column("sample_digest", _Digest, key="sample", nullable=False),
    Column("file_sha256", _Digest),
)

seed_answers = Table(
    "seed_answers",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("replica", _ShortName, nullable=False),
    Column("seed", ForeignKey(seeds.c.position), nullable=False),
    *_answer("original", nullable=False),
    *_answer("deployed", nullable=False),
    Column("decision", String(16), nullable=False),
    UniqueConstraint("replica", "seed"),
)

skipped = Table(
    "skipped",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("reason", Text, nullable=False),
)

notices = Table(
    "notices",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("text", Text, nullable=False),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("replica", _ShortName, nullable=False),
    Column("seed", ForeignKey(seeds.c.position), nullable=False),
    Column("status", String(16), nullable=False),
    Column("chain_seed", String(80), nullable=False),
    Column("seed_queries", Integer, nullable=False),
    Column("search_queries", Integer, nullable=False),
    Column("confirmation_queries", Integer, nullable=False),
    Column("host_only_queries", Integer, nullable=False),
    Column("round_trips", Integer, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("device_seconds", Double, nullable=False),
    Column("device", ForeignKey(devices.c.digest)),
    Column("device_name", _Name, nullable=False),
    Column("sample_digest", _Digest, key="trigger"),
    *_answer("original"),
    *_answer("deployed"),
    Column("original_label", Integer),
    Column("deployed_label", Integer),
    Column("original_margin", Double),
    Column("deployed_margin", Double),
    Column("l2", Double),
    Column("linf", Integer),
    Column("snr_db", Double),
    Column("front", JSON, nullable=False),
    Column("mutations", JSON, nullable=False),
    Column("detail", Text, nullable=False),
    Column("confirmed", Integer, nullable=False),
    Column("finished_at", String(40), nullable=False),
    Column("environment", ForeignKey(environments.c.digest)),
    UniqueConstraint("replica", "seed"),
)

surveyed_seeds = Table(
    "surveyed_seeds",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("replica", _ShortName, nullable=False),
    Column("seed", ForeignKey(seeds.c.position), nullable=False),
    Column("phase", String(16), nullable=False),
    Column("round", Integer, nullable=False),
    Column("survey_queries", Integer, nullable=False),
    Column("confirmation_queries", Integer, nullable=False),
    Column("host_only_queries", Integer, nullable=False),
    Column("device_seconds", Double, nullable=False),
    Column("device_name", _Name, nullable=False),
    Column("detail", Text, nullable=False),
    UniqueConstraint("replica", "seed", "phase", "round"),
)

survey_answers = Table(
    "survey_answers",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("replica", _ShortName, nullable=False),
    Column("seed", ForeignKey(seeds.c.position), nullable=False),
    Column("phase", String(16), nullable=False),
    Column("number", Integer, nullable=False),
    Column("family", String(100), nullable=False),
    Column("severity", Integer, nullable=False),
    Column("params", JSON, nullable=False),
    Column("sample_digest", _Digest, key="sample", nullable=False),
    *_answer("original", nullable=False),
    *_answer("deployed"),
    Column("original_margin", Double),
    Column("deployed_margin", Double),
    Column("total_variation", Double),
    Column("decision", String(16), nullable=False),
    Column("confident_deviation", Boolean, nullable=False),
    Column("confirmed", Integer, nullable=False),
    Column("device_name", _Name, nullable=False),
    Column("detail", Text, nullable=False),
    UniqueConstraint("replica", "seed", "phase", "number"),
)

reference_answers = Table(
    "reference_answers",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("reference", _ShortName, nullable=False),
    Column("seed", ForeignKey(seeds.c.position), nullable=False),
    Column("phase", String(16), nullable=False),
    Column("number", Integer, nullable=False),
    *_answer("deployed", nullable=False),
    Column("total_variation", Double),
    Column("decision", String(16), nullable=False),
    UniqueConstraint("reference", "seed", "phase", "number"),
)

replays = Table(
    "replays",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("replica", _ShortName, nullable=False),
    Column("seed", ForeignKey(seeds.c.position), nullable=False),
    Column("on_device", _ShortName, nullable=False),
    Column("sample_digest", _Digest, key="trigger", nullable=False),
    *_answer("deployed", nullable=False),
    Column("deployed_label", Integer),
    Column("decision", String(16), nullable=False),
    UniqueConstraint("replica", "seed", "on_device"),
)

telemetry = Table(
    "telemetry",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("device", _Name, nullable=False),
    Column("minute", String(40), nullable=False),
    Column("queries", Integer, nullable=False),
    Column("latency_median_s", Double),
    Column("latency_p99_s", Double),
    Column("latency_max_s", Double),
    Column("latencies", JSON, nullable=False),
    Column("rss_bytes", BigInteger),
    Column("temperature_mean_c", Double),
    Column("temperature_max_c", Double),
    Column("frequency_least_mhz", Double),
    Column("gpu_load_mean", Double),
    Column("gpu_least_mhz", Double),
    Column("readings", Integer, nullable=False),
    Column("throttled_readings", Integer, nullable=False),
    Column("throttle_reasons", JSON, nullable=False),
    Column("battery_percent", Double),
    Column("battery_charging", Boolean),
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
