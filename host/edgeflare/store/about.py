"""What is known of a campaign as a whole: configuration, models, environments, devices, notices."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, insert, select, update

from edgeflare.store import documents, tables
from edgeflare.store.access import Access
from edgeflare.store.failures import decoding
from edgeflare.store.records import Device, SkippedRecord
from edgeflare.store.rows import device_from_row, digest_of, environment_from_row


class About(Access):
    """The part of the store that describes the campaign."""

    _environment: str | None = None

    @property
    def id(self) -> str:
        """The campaign's own name, unlike any other's; 32 hexadecimal digits."""
        return str(self._campaign_row().id)

    @property
    def created_at(self) -> datetime:
        """When the campaign was made, UTC."""
        with decoding(self.folder, "when the campaign was made"):
            return documents.moment(self._campaign_row().created_at)

    @property
    def campaign(self) -> dict[str, Any]:
        """The resolved configuration."""
        with decoding(self.folder, "the campaign's configuration"):
            return documents.config(self._campaign_row().config)

    def setting(self, *keys: str) -> Any:
        """Return one setting of the resolved configuration, by the names of its tables and its own.

        Raises StoreError where there is none.
        """
        with decoding(self.folder, f"the setting {'.'.join(keys)}"):
            value: Any = self.campaign
            for key in keys:
                value = value[key]
        return value

    def set_campaign(self, campaign: dict[str, Any], notices: Sequence[str] = ()) -> None:
        """Replace the resolved configuration; record, together with it, what there is to know of that."""
        with self._writing() as connection:
            connection.execute(update(tables.campaign).values(config=campaign))
            for text in notices:
                connection.execute(insert(tables.notices).values(text=text))

    @property
    def models(self) -> dict[str, Any]:
        """What is known of "original" and "deployed": name, path, sha256, runtime and so on."""
        with decoding(self.folder, "what is known of the models"):
            return documents.models(self._campaign_row().models)

    def set_models(self, original: dict[str, Any], deployed: dict[str, Any]) -> None:
        """Replace what is known of the two models, both JSON objects."""
        models = {"original": original, "deployed": deployed}
        with self._writing() as connection:
            connection.execute(update(tables.campaign).values(models=models))

    def fact(self, key: str) -> Any | None:
        """Return what `set_fact` was given for this key, a JSON value; None where nothing was."""
        query = select(tables.facts.c.value).where(tables.facts.c.name == key)
        with self._reading(f"the fact {key!r}") as connection:
            return documents.fact(key, connection.execute(query).scalar())

    def set_fact(self, key: str, value: Any) -> None:
        """Keep a JSON value under a key of up to 200 characters; replaces what was there."""
        with self._writing() as connection:
            _set_fact(connection, key, value)

    @property
    def environment(self) -> dict[str, Any]:
        """The host's environment in force: the one added last."""
        return self.environments().get(self._environment or "", {})

    def environments(self) -> dict[str, dict[str, Any]]:
        """Every environment the campaign ran in, by digest."""
        return dict(self._rows(tables.environments, environment_from_row))

    def add_environment(self, environment: dict[str, Any]) -> str:
        """Say in what environment outcomes are found from now on; return its digest."""
        with self._writing() as connection:
            self._environment = add_environment_row(connection, environment)
        return self._environment

    def add_device(self, fingerprint: dict[str, Any], name: str) -> str:
        """Record a device by its fingerprint, a JSON object, once; return the digest of that."""
        digest = digest_of(fingerprint)
        with self._writing() as connection:
            _add_once(connection, tables.devices, digest=digest, name=name, fingerprint=fingerprint)
        return digest

    def devices(self) -> list[Device]:
        """Every device that took part, like ones (of one fingerprint) once."""
        return self._rows(tables.devices, device_from_row)

    def fingerprints(self) -> dict[str, dict[str, Any]]:
        """Each device's fingerprint by its name; devices that are alike share one record."""
        known: dict[str, str] = self.fact("fingerprints") or {}
        described = {device.digest: device.fingerprint for device in self.devices()}
        with decoding(self.folder, "the fact 'fingerprints'"):
            return {name: described[digest] for name, digest in known.items()}

    def add_notice(self, text: str) -> None:
        """Record something the user ought to know."""
        with self._writing() as connection:
            connection.execute(insert(tables.notices).values(text=text))

    def notices(self) -> list[str]:
        """Every notice, in the order they were added."""
        return self._rows(tables.notices, lambda row: str(row.text))

    def add_skipped(self, name: str, reason: str) -> None:
        """Record a file that could not be a seed."""
        with self._writing() as connection:
            connection.execute(insert(tables.skipped).values(name=name, reason=reason))

    def complete_seeds(self, skipped: Sequence[SkippedRecord], notices: Sequence[str]) -> None:
        """Record, together, what could not be a seed, what else there is to know, and that all are here."""
        with self._writing() as connection:
            for one in skipped:
                row = {"name": one.name, "reason": one.reason}
                connection.execute(insert(tables.skipped).values(**row))
            for text in notices:
                connection.execute(insert(tables.notices).values(text=text))
            _set_fact(connection, "seeds_complete", True)

    def skipped(self) -> list[SkippedRecord]:
        """Every file that could not be a seed."""
        return self._rows(tables.skipped, lambda row: documents.record(SkippedRecord, row))

    def _campaign_row(self) -> Row[Any]:
        with self._reading() as connection:
            return connection.execute(select(tables.campaign)).one()


def _set_fact(connection: Connection, key: str, value: Any) -> None:
    table = tables.facts
    change = update(table).where(table.c.name == key).values(value=value)
    if connection.execute(change).rowcount == 0:
        connection.execute(insert(table).values(name=key, value=value))


def add_environment_row(connection: Connection, environment: dict[str, Any]) -> str:
    """Add an environment, once, and return its digest."""
    digest = digest_of(environment)
    _add_once(connection, tables.environments, digest=digest, description=environment)
    return digest


def _add_once(connection: Connection, table: Table, **values: Any) -> None:
    known = select(table.c.digest).where(table.c.digest == values["digest"])
    if connection.execute(known).first() is None:
        connection.execute(insert(table).values(**values))
