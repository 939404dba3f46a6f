"""A triage in a process of its own: a file that crashes its runtime costs one check, not the campaign."""

import pickle
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from edgeflare._internal.processes import (
    how_it_failed,
    python_calling,
    run_again_where_killed,
)
from edgeflare.answers import AnswerKind
from edgeflare.errors import ModelError
from edgeflare.triage.cause import Triage
from edgeflare.triage.model import ModelFile
from edgeflare.triage.pair import Pair, PairSeeds
from edgeflare.triage.run import triage

_TIMEOUT_S = 3600.0
_MOST_CRASHES = 4
_REQUEST, _NOW, _RESULT = "request.pickle", "now.txt", "result.pickle"


def triage_apart(
    files: tuple[ModelFile, ModelFile], seeds: PairSeeds, kind: AnswerKind[Any]
) -> Triage:
    """Return why a pair differs.

    A check at which the process ends is left out and named as not tried. Raises ModelError where the
    process can't be started, or ends before any check.
    """
    failed: dict[str, str] = {}
    with TemporaryDirectory(prefix="edgeflare-") as name:
        folder = Path(name)
        while True:
            request = files, seeds, kind, failed
            (folder / _REQUEST).write_bytes(pickle.dumps(request))
            (folder / _NOW).write_text("")
            try:
                done = run_again_where_killed(python_calling(triage_here, name), _TIMEOUT_S)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise ModelError(f"the triage can't be run: {error}") from error
            if (folder / _RESULT).is_file():
                result = pickle.loads((folder / _RESULT).read_bytes())  # noqa: S301
                if isinstance(result, str):
                    raise ModelError(result)
                triaged: Triage = result
                return triaged
            # without a result the process ended in a check: the next one leaves it out
            check = (folder / _NOW).read_text()
            if not check or check in failed or len(failed) >= _MOST_CRASHES:
                raise ModelError(f"the triage failed: {how_it_failed(done)}")
            failed[check] = how_it_failed(done)


def triage_here(name: str) -> None:
    """Do what `triage_apart` asks for in this process; write the result."""
    folder = Path(name)
    files, seeds, kind, failed = pickle.loads((folder / _REQUEST).read_bytes())  # noqa: S301

    def begin(check: str) -> None:
        (folder / _NOW).write_text(check)

    try:
        pair = Pair(files, seeds, kind)
        result: Triage | str = triage(pair, begin=begin, failed=failed)
    except ModelError as error:
        result = str(error)
    (folder / _RESULT).write_bytes(pickle.dumps(result))
