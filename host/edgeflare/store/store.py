"""A campaign's folder: its database and its samples."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, and_, insert, select, update
from sqlalchemy.exc import IntegrityError

from edgeflare._internal.files import remove_torn
from edgeflare.answers.columns import stored_kind
from edgeflare.answers.kind import AnswerKind
from edgeflare.devices.telemetry import DeviceMinute
from edgeflare.errors import StoreError
from edgeflare.store import analyses, creation, documents, queries, survey, tables
from edgeflare.store.analyses import AnalysisRun, StoredResult
from edgeflare.store.columns import Columns
from edgeflare.store.database import (
    Database,
    Schema,
    batches,
    decoding,
    no_campaign_error,
    translate_errors,
)
from edgeflare.store.location import DATABASE_NAME, is_campaign
from edgeflare.store.lock import CampaignLock
from edgeflare.store.mapped import answers_of, columns_of, reader, row_of
from edgeflare.store.migration import open_database
from edgeflare.store.records import (
    DeviceRecord,
    EnvironmentRecord,
    OutcomeCounts,
    OutcomeRecord,
    ReferenceAnswer,
    ReplayRecord,
    SeedAnswer,
    SeedComparison,
    SeedRecord,
    SurveyedSeed,
    SurveyRecord,
    digest_of,
)
from edgeflare.store.samples import LazySamples, StoredFolder, discard_samples
from edgeflare.store.state import CampaignState
from edgeflare.store.survey import SurveyCounts
from edgeflare.types import Decision, Outputs, Sample, SeedInput, Skipped

_SCHEMA = Schema("campaign", DATABASE_NAME, tables.SCHEMA_VERSION, tables.meta, 5, queries.upgrade)
_T = TypeVar("_T")
_SEEDS, _ANSWERS, _OUTCOMES = tables.seeds, tables.seed_answers, tables.outcomes
_REPLAYS, _TELEMETRY = tables.replays, tables.telemetry


class Store(StoredFolder):
    """All data of a campaign: `campaign.sqlite` and `samples/` in one folder.

    Every method that adds something is one transaction and is on disk when it returns. Any thread
    may call any method; several processes may read while one writes. What a method iterates over is
    read a page at a time, so that memory does not grow with the campaign. All methods raise
    StoreError, DiskFullError among them.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.columns = Columns(database)
        """Figures as arrays, for what needs no record of each outcome or answer."""
        self.state = CampaignState(database)
        """The facts of the campaign, by attribute."""
        self._environment: str | None = None
        self._made_folder = False
        self._copies: list[Path] = []
        self._positions: dict[str, int] = {}  # of seeds by their ids; none ever changes

    @classmethod
    def create(
        cls,
        folder: Path,
        campaign: dict[str, Any],
        *,
        id: str | None = None,  # noqa: A002
        environment: dict[str, Any] | None = None,
        files: Sequence[Path] = (),
        database: str | None = None,
        samples: str | None = None,
    ) -> "Store":
        """Make a campaign folder, which must not exist or be empty but for its lock.

        `campaign` is the resolved configuration, `environment` the host's (library versions and so
        on), both JSON objects. `id` is the campaign's own name, 32 hexadecimal digits; None draws
        one. Of `files` the folder gets a copy. `database` is the URL of a PostgreSQL database that
        has the data in place of a file of the folder; `samples` is the folder that has those of
        several campaigns, each in a folder of its own there, or the URL of a prefix in an object
        store, such as `s3://bucket/prefix`.
        """
        folder = Path(folder)
        cls.check_free(folder)
        about = {
            "id": id or uuid.uuid4().hex,
            "created_at": datetime.now(timezone.utc).isoformat(),
            "models": {},
        }

        def fill(connection: Connection) -> None:
            queries.make_tables(connection)
            config = documents.storable(documents.config, campaign)
            connection.execute(insert(tables.campaign).values(**about, config=config))
            if environment is not None:
                digest = queries.add_environment(connection, environment)
                CampaignState.environment.write(connection, digest)

        made = creation.make(folder, _SCHEMA, fill, database=database, samples=samples, files=files)
        store = cls.open(folder)
        store._made_folder = made
        store._copies = [folder / file.name for file in files]
        return store

    check_free = staticmethod(creation.check_free)

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Open a campaign folder made by `create`.

        A campaign of an earlier edgeflare is migrated; see `open_database`.
        """
        folder = Path(folder)
        with decoding(folder), translate_errors(folder):
            if folder.is_file():
                raise StoreError(f"{folder} is a file; name the campaign's folder")
            if not folder.is_dir():
                raise StoreError(f"there is no campaign folder {folder}; check the path")
            if not is_campaign(folder):
                raise no_campaign_error(folder)
            store = cls(open_database(folder, _SCHEMA, CampaignLock(folder)))
            try:
                newest = tables.environments.c.position.desc()
                query = select(tables.environments.c.digest).order_by(newest).limit(1)
                with store._database.reading() as connection:
                    queries.check_references(connection, folder)
                    last = connection.execute(query).scalar()
                store._environment = store.state.environment or last
                store._samples.rate = store.state.sample_rate
            except BaseException:
                store.close()
                raise
        return store

    def remove_torn(self) -> None:
        """Remove files that a killed process left; only the holder of the campaign's lock may."""
        with translate_errors(self.folder):
            remove_torn(self.folder)
            self._samples.remove_torn()

    def discard(self) -> None:
        """Close and remove a campaign `create` made; its own folder, too, if that is empty."""
        self.close()
        with translate_errors(self.folder):
            discard_samples(self.folder)
            creation.remove(self.folder, _SCHEMA)
            for path in self._copies:
                path.unlink()
            if self._made_folder and not any(self.folder.iterdir()):
                self.folder.rmdir()

    # The campaign: configuration, models, environments, devices, notices

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
        """The resolved configuration; its "store" is the database that the folder points to."""
        with decoding(self.folder, "the campaign's configuration"):
            found = documents.config(self._campaign_row().config)
        if found.get("store"):
            found["store"] = self._database.location and self._database.location.url
        return found

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
        """Replace the resolved configuration and add notices, in one transaction."""
        with self._database.writing() as connection:
            config = documents.storable(documents.config, campaign)
            connection.execute(update(tables.campaign).values(config=config))
            queries.add_notices(connection, notices)

    @property
    def models(self) -> dict[str, Any]:
        """What is known of "original" and "deployed": name, path, sha256, runtime and so on."""
        with decoding(self.folder, "what is known of the models"):
            return documents.models(self._campaign_row().models)

    @property
    def kind(self) -> AnswerKind[Any]:
        """The kind of the models' answers; that of scores while nothing is known of the models."""
        with decoding(self.folder, "what is known of the models"):
            return stored_kind(self.models)

    def set_models(self, original: dict[str, Any], deployed: dict[str, Any]) -> None:
        """Replace what is known of the two models, both JSON objects."""
        with self._database.writing() as connection:
            models = documents.storable(
                documents.models, {"original": original, "deployed": deployed}
            )
            connection.execute(update(tables.campaign).values(models=models))

    def add_result(
        self,
        name: str,
        result: Any,
        *,
        settings: Mapping[str, Any] | None = None,
        units: analyses.UnitRows | None = None,
    ) -> int:
        """Store the result of a finished run of an analysis, a dataclass; return the run's number.

        `settings` is a JSON object; with the result `units` replace the table unit_scores.
        """
        return analyses.add(self._database, name, result, settings, units)

    def analysis_run(self, name: str, settings: Mapping[str, Any]) -> AnalysisRun:
        """Return the unfinished run of an analysis with these settings, or begin one.

        Its `parts` are what it finished before it was interrupted; `finish` stores its result.
        """
        return analyses.begin(self._database, name, settings)

    def result(self, name: str, kind: type[_T], parts: Sequence[str] = ()) -> _T | None:
        """Return the result of the newest finished run of an analysis, None where there is none.

        Figures that aren't finite aren't known: `parts` with some are left out, a result with others is.
        """
        return analyses.newest(self._database, name, kind, parts)

    def results(self) -> list[StoredResult]:
        """Every finished run of an analysis, in the order they were begun."""
        return analyses.finished(self._database)

    @property
    def environment(self) -> dict[str, Any]:
        """The host's environment in force: the one added last."""
        return self.environments().get(self._environment or "", {})

    def environments(self) -> dict[str, dict[str, Any]]:
        """Every environment the campaign ran in, by digest."""
        found = self._database.rows(tables.environments, reader(EnvironmentRecord))
        return {one.digest: one.description for one in found}

    def add_environment(self, environment: dict[str, Any], *, main: bool = True) -> str:
        """Set the environment in which outcomes are found by this object; return its digest.

        `main`: it is the one in force, which `environment` returns, also when the campaign is opened.
        """
        with self._database.writing() as connection:
            self._environment = queries.add_environment(connection, environment)
            if main:
                CampaignState.environment.write(connection, self._environment)
        return self._environment

    def add_device(self, fingerprint: dict[str, Any], name: str) -> str:
        """Record a device once by its fingerprint, a JSON object; return that one's digest."""
        digest = digest_of(fingerprint)
        with self._database.writing() as connection:
            queries.add_once(
                connection, tables.devices, digest=digest, name=name, fingerprint=fingerprint
            )
        return digest

    def devices(self) -> list[DeviceRecord]:
        """Every device that took part; those of one fingerprint once."""
        return self._database.rows(tables.devices, reader(DeviceRecord))

    def fingerprints(self) -> dict[str, dict[str, Any]]:
        """Each device's fingerprint by its name; devices that are alike share one record."""
        known = self.state.fingerprints
        described = {device.digest: device.fingerprint for device in self.devices()}
        with decoding(self.folder, "the fact 'fingerprints'"):
            return {name: described[digest] for name, digest in known.items()}

    def add_notice(self, text: str) -> None:
        """Record something the user ought to know."""
        with self._database.writing() as connection:
            queries.add_notices(connection, [text])

    def notices(self) -> list[str]:
        """Every notice, in the order they were added, and those of what is damaged."""
        with self._database.reading() as connection:
            damage = queries.notices_of_damage(connection)
        return self._database.rows(tables.notices, lambda row: str(row.text)) + damage

    def add_telemetry(self, minutes: Sequence[DeviceMinute]) -> None:
        """Add devices' minutes in one transaction; an interrupted minute may come in parts."""
        if minutes:
            with self._database.adding() as connection:
                rows = [row_of(one, latencies=[*(one.latencies or {}).items()]) for one in minutes]
                connection.execute(insert(_TELEMETRY), rows)

    def telemetry(self) -> Iterator[DeviceMinute]:
        """Every minute of every device, in the order they were added."""
        return self._database.pages(select(_TELEMETRY), _TELEMETRY.c.position, reader(DeviceMinute))

    # Samples and seeds

    @property
    def sample_rate(self) -> int | None:
        """The rate of all samples in Hz; None of images, and before it was set."""
        return self._samples.rate

    def set_sample_rate(self, rate: int) -> None:
        """Make the campaign's samples audio at this rate in Hz; to be set before any is put."""
        self.state.sample_rate = rate
        self._samples.rate = rate

    def put_sample(self, sample: Sample) -> str:
        """Store a sample and return its digest; it is written once, however often it is put."""
        with translate_errors(self.folder):
            return self._samples.put(sample)

    def add_seeds(self, seeds: Iterable[SeedInput], order: Sequence[str] = ()) -> list[str]:
        """Record many seeds, in order behind those there are; return the digests of their samples.

        `order` has all their ids in the order to record them in; else it is as they come. All of
        them or, where one has an id that is there already, none. Samples are not held in memory.
        """
        rows: list[dict[str, Any]] = []
        for batch in batches(seeds):
            with translate_errors(self.folder):
                digests = self._samples.put_all([seed.sample for seed in batch])
            rows += (
                {
                    "id": seed.id,
                    "label": seed.label,
                    "sample": digest,
                    "file_sha256": seed.file_sha256,
                }
                for seed, digest in zip(batch, digests, strict=True)
            )
        places = {seed_id: place for place, seed_id in enumerate(order)}
        rows.sort(key=lambda row: places.get(row["id"], 0))
        queries.add_seeds(self._database, rows)
        return [row["sample"] for row in rows]

    def complete_seeds(self, skipped: Sequence[Skipped], notices: Sequence[str]) -> None:
        """Record that all seeds are here, with skipped files and notices, in one transaction."""
        with self._database.writing() as connection:
            for one in skipped:
                connection.execute(insert(tables.skipped).values(name=one.name, reason=one.reason))
            queries.add_notices(connection, notices)
            CampaignState.seeds_complete.write(connection, True)

    def skipped(self) -> list[Skipped]:
        """Every file that could not be a seed."""
        return self._database.rows(tables.skipped, reader(Skipped))

    def seed_ids(self) -> set[str]:
        """The ids of all seeds."""
        with self._database.reading() as connection:
            return set(connection.execute(select(_SEEDS.c.id)).scalars())

    def seed_samples(self) -> LazySamples:
        """The samples of the seeds there are now, in order; each is read when it is asked for."""
        query = select(_SEEDS.c.sample).order_by(_SEEDS.c.position)
        with self._database.reading() as connection:
            digests = list(connection.execute(query).scalars())
        return LazySamples(self.get_sample, digests)

    def seed_count(self) -> int:
        """How many seeds there are."""
        with self._database.reading() as connection:
            return queries.seed_count(connection)

    def add_seed_answers(self, answers: Sequence[SeedAnswer], replica: str = "") -> None:
        """Record both models' answers on some seeds, of one replica, in one transaction.

        Of several answers on one seed the first one that was ever added stays.
        """
        first: dict[str, SeedAnswer] = {}
        for answer in answers:
            first.setdefault(answer.seed_id, answer)
        with self._database.adding() as connection:
            positions = queries.positions(connection, self.folder, first)
            rows = [
                columns_of(answer, seed=positions[seed_id], replica=replica)
                for seed_id, answer in first.items()
            ]
            queries.add_rows(connection, _ANSWERS, rows, keep_first=True)

    def seeds(self, replica: str | None = None) -> Iterator[SeedRecord]:
        """Every seed in order, with this replica's answers as its outputs where there are any.

        None takes the replica whose answer was added first: the only one, "", in a pool.
        """
        if replica is None:
            with self._database.reading() as connection:
                replica = queries.first_replica(connection)
        query = queries.seeds_with_answers(replica, every_seed=True)
        return self._database.pages(query, _SEEDS.c.position, self._seed)

    def seeds_of(self, ids: Sequence[str], replica: str = "") -> Iterator[SeedRecord]:
        """The seeds of these ids, in their order, each with this replica's answers."""
        query = queries.seeds_with_answers(replica, every_seed=True)
        return self._database.pages_in_order(query, _SEEDS.c.id, ids, self._seed)

    def pending_seeds(
        self, replica: str = "", order: Sequence[str] | None = None
    ) -> Iterator[SeedRecord]:
        """The seeds that this replica has answered and has no outcome of, in order, each once.

        `order` has the ids of those that are wanted, in the order to give them in; None: all, in
        that of the seeds. Read a page at a time while iterating: outcomes may be added meanwhile; a
        seed that gets its outcome between may still come.
        """
        finished = and_(_OUTCOMES.c.seed == _SEEDS.c.position, _OUTCOMES.c.replica == replica)
        query = queries.seeds_with_answers(replica, every_seed=False).where(
            ~select(_OUTCOMES.c.position).where(finished).exists()
        )
        if order is not None:
            return self._database.pages_in_order(query, _SEEDS.c.id, order, self._seed)
        return self._database.pages(query, _SEEDS.c.position, self._seed)

    # The survey, and what references answer to its inputs

    def sample_digest(self, sample: Sample) -> str:
        """Return the digest that `put_sample` would return; nothing is stored."""
        return self._samples.digest(sample)

    def add_survey(
        self,
        records: Sequence[SurveyRecord],
        runs: Sequence[SurveyedSeed] = (),
        *,
        keep_first: bool = False,
    ) -> None:
        """Record answers of a survey, and the seeds finished with them, in one transaction.

        Raises StoreError where one is there already; with `keep_first` that one stays.
        """
        survey.add(self._database, records, runs, keep_first=keep_first)

    def survey(
        self, replica: str | None = None, phase: str | None = None, *, deviating: bool = False
    ) -> Iterator[SurveyRecord]:
        """The survey's answers by phase, replica, seed and number; None: of all.

        `deviating`: only the confident deviations.
        """
        return survey.read(self._database, replica, phase, deviating=deviating)

    def survey_at(self, positions: Sequence[int]) -> Iterator[SurveyRecord]:
        """The answers at these positions of `Columns.survey`, in the order of `survey`."""
        return survey.read_at(self._database, positions)

    def surveyed_seeds(self) -> Iterator[SurveyedSeed]:
        """What each finished part of the survey cost, in the order they were added."""
        return survey.runs(self._database)

    def surveyed_seed_ids(self, replica: str = "") -> set[str]:
        """The ids of the seeds whose survey is finished, without what pursuits asked."""
        return survey.finished_ids(self._database, replica)

    def survey_counts(self, phase: str | None = None) -> SurveyCounts:
        """The sums over all surveyed seeds, of one phase or of all."""
        return survey.count(self._database, phase)

    def add_reference_answers(self, answers: Sequence[ReferenceAnswer]) -> None:
        """Record what a reference answers to inputs of the survey, in one transaction."""
        survey.add_references(self._database, answers)

    def reference_answers(self, reference: str, phase: str = "") -> Iterator[ReferenceAnswer]:
        """One reference's answers, of one phase or of all, in the order they were added."""
        return survey.read_references(self._database, reference, phase)

    # Outcomes of the searches, and what other devices answer to what they found

    def add_outcome(self, outcome: OutcomeRecord, *, keep_first: bool = False) -> bool:
        """Record how the search from one seed ended; a seed has one outcome a replica.

        Raises StoreError where it has one already; with `keep_first` that one stays. Returns
        whether this one was added.
        """
        with self._database.adding(one_statement=True) as connection:
            self._check_stored(outcome.trigger)
            seed = self._position(connection, outcome.seed_id)
            row = row_of(outcome, seed=seed, environment=self._environment)
            try:
                added = queries.add_rows(connection, _OUTCOMES, [row], keep_first=keep_first)
            except IntegrityError as error:
                whose = f" on {outcome.replica}" if outcome.replica else ""
                raise StoreError(
                    f"the outcome of seed {outcome.seed_id!r}{whose} can't be added to "
                    f"{self.folder}: it has one already (does another program run this campaign?), "
                    "or its device is unknown"
                ) from error
        return added == 1

    def outcomes(self) -> Iterator[OutcomeRecord]:
        """Every outcome, of all replicas, in the order they were added."""
        return self._database.pages(
            queries.with_seed_id(_OUTCOMES), _OUTCOMES.c.position, reader(OutcomeRecord)
        )

    def outcomes_of(self, replica: str = "") -> Iterator[OutcomeRecord]:
        """Every outcome of this replica, in the order of the seeds."""
        query = queries.with_seed_id(_OUTCOMES).where(_OUTCOMES.c.replica == replica)
        return self._database.pages(query, _OUTCOMES.c.seed, reader(OutcomeRecord))

    def outcomes_at(self, positions: Sequence[int]) -> Iterator[OutcomeRecord]:
        """The outcomes at these positions of `Columns.outcomes`, in the order they were added."""
        for batch in batches(sorted(positions)):
            query = queries.with_seed_id(_OUTCOMES).where(_OUTCOMES.c.position.in_(batch))
            yield from self._database.pages(query, _OUTCOMES.c.position, reader(OutcomeRecord))

    def finished_seed_ids(self, replica: str = "") -> set[str]:
        """The ids of all seeds that have an outcome of this replica."""
        query = select(_SEEDS.c.id).join(_OUTCOMES).where(_OUTCOMES.c.replica == replica)
        with self._database.reading() as connection:
            return set(connection.execute(query).scalars())

    def remove_failed(self, replica: str = "") -> None:
        """Remove this replica's failed searches, which are done again; their queries stay counted."""
        with self._database.writing() as connection:
            queries.remove_failed(connection, replica)

    def tally(self, replica: str | None = None) -> OutcomeCounts:
        """Count the outcomes of this replica, or of all of them."""
        with self._database.reading() as connection:
            return queries.tally(connection, replica)

    def add_replay(self, replay: ReplayRecord) -> None:
        """Record what a device answers to a trigger; of several answers the first one stays."""
        with self._database.adding(one_statement=True) as connection:
            self._check_stored(replay.trigger)
            row = row_of(replay, seed=self._position(connection, replay.seed_id))
            queries.add_rows(connection, _REPLAYS, [row], keep_first=True)

    def replays(self) -> Iterator[ReplayRecord]:
        """Every replay, in the order they were added."""
        return self._database.pages(
            queries.with_seed_id(_REPLAYS), _REPLAYS.c.position, reader(ReplayRecord)
        )

    def comparisons(self, replicas: Sequence[str]) -> Iterator[SeedComparison]:
        """Every seed in order, with what these replicas answer; read a page at a time.

        A replay on which the device could not answer is left out. Where a device found an input
        itself, what it answered and confirmed then counts, not the replay.
        """
        return queries.compare(self._database, list(replicas))

    def _campaign_row(self) -> Row[Any]:
        with self._database.reading() as connection:
            return connection.execute(select(tables.campaign)).one()

    def _seed(self, row: Row[Any]) -> SeedRecord:
        self._positions[row.id] = row.position
        answered = row.decision is not None
        outputs = Outputs(*answers_of(row), Decision(row.decision)) if answered else None
        return documents.record(SeedRecord, row, outputs=outputs)

    def _position(self, connection: Connection, seed_id: str) -> int:
        if seed_id not in self._positions:
            self._positions[seed_id] = queries.position(connection, self.folder, seed_id)
        return self._positions[seed_id]

    def _check_stored(self, digest: str | None) -> None:
        if digest and not self.has_sample(digest):
            raise StoreError(f"the sample {digest} was not put into {self.folder}")


@contextmanager
def open_store(campaign: Store | Path | str) -> Iterator[Store]:
    """Give the store of a campaign's folder, or address, and close it; a store is given as it is."""
    if isinstance(campaign, Store):
        yield campaign
        return
    folder = campaign if isinstance(campaign, Path) else creation.folder_at(campaign)
    with Store.open(folder) as store:
        yield store
