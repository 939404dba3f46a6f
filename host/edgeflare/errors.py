"""Every error a user can meet, one tree; each carries the exit code of the command line.

EdgeFlareError                     2
├── UsageError                     2   the command, a flag or the campaign file is wrong
│   ├── SeedError                  2   the seeds can't be used
│   ├── InventoryError             2   the device inventory can't be used
│   └── ModelError                 2   a model file can't be used
├── StrategyError                  2   a search strategy or a mutation operator failed
├── PreflightError                 2   the model pair or its preprocessing looks wrong
├── StoreError                     2   the campaign folder can't be used
│   ├── UnwritableError            2   another process runs the campaign, or nobody may write to it
│   ├── StoreAwayError             3   the database or object store can't be reached, or was lost
│   └── DiskFullError              3   no space left on the host
├── HostError                      3   this host has no memory, thread, home or working folder left
├── TrackingError                  3   a tracking server doesn't answer, or refuses a run
└── DeviceError                    3   a device or its runtime failed
    ├── UnreachableError           3   no connection
    ├── HostKeyError               3   unknown or changed SSH host key
    ├── AuthenticationError        3   the device refused key or password
    ├── DevicePythonError          3   no Python, or one that is too old
    ├── DeviceRuntimeError         3   no numpy, no runtime, or a clash between them
    ├── DeviceDiskFullError        3   no space left on the device
    ├── DeviceProtocolError        3   something else than the agent answers
    ├── AgentDiedError             3   the agent ended, or its link; its last stderr lines are shown
    │   └── AgentCrashedError      3   the agent certainly ended, and not in an orderly way
    ├── DeviceTimeoutError         3   no answer within the deadline
    │   └── InferenceTimeoutError  3   the agent lives, but an inference does not end
    ├── DeviceBusyError            3   another campaign holds the device
    ├── DeviceChangedError         3   the device came back as another one than it was
    ├── DeviceAwayError            3   the device stays away; its work is handed to others
    └── InferenceFailedError       3   the device, or the original, can't answer on an input
"""

from pathlib import Path


class EdgeFlareError(Exception):
    """Base of all errors; its text is one clear sentence: what, where, what to do next."""

    exit_code = 2


class UsageError(EdgeFlareError):
    """The command, a flag or the campaign file is wrong."""


class SeedError(UsageError):
    """The seeds can't be used."""


class InventoryError(UsageError):
    """The device inventory can't be used, or has no such device."""


class ModelError(UsageError):
    """A model file can't be used."""


class StrategyError(EdgeFlareError):
    """A search strategy or a mutation operator failed; it may be the user's own."""


class PreflightError(EdgeFlareError):
    """The model pair or its preprocessing looks wrong, by the answers to the seeds.

    The campaign was run all the same, and is in `folder`.
    """

    folder: Path | None = None


class StoreError(EdgeFlareError):
    """The campaign folder can't be used."""


class UnwritableError(StoreError):
    """Another process runs what is in the folder, or this one may not write to it."""


class StoreAwayError(StoreError):
    """The database's server or the object store can't be reached, was lost or has no connection left."""

    exit_code = 3
    repeatable = False
    """Whether it was lost in a statement: what its transaction did is not committed."""


class DiskFullError(StoreError):
    """No space left on the host.

    `kept`: what is stored all the same, `advice`: what to do next; "" where the text says it. A
    bench, a night and a corpus set both to what fits them.
    """

    exit_code = 3

    def __init__(self, text: str, *, kept: str = "", advice: str = "") -> None:
        super().__init__(text)
        self.kept = kept
        self.advice = advice

    def __str__(self) -> str:
        kept = f"; {self.kept}" if self.kept else ""
        return super().__str__() + kept + (f": {self.advice}" if self.advice else "")


class HostError(EdgeFlareError):
    """This host lacks what every program needs: memory, threads, a home or a working folder."""

    exit_code = 3


class TrackingError(EdgeFlareError):
    """A tracking server, such as MLflow's, doesn't answer or refuses a run."""

    exit_code = 3


class DeviceError(EdgeFlareError):
    """A device or its runtime failed."""

    exit_code = 3
    retry_after_s = 0.0
    """Seconds for which the device is not to be tried again."""
    may_pass = True
    """False: trying again is no use, unless it happens no more."""


class UnreachableError(DeviceError):
    """No connection to the device."""


class HostKeyError(DeviceError):
    """The device's SSH host key is unknown or has changed."""


class AuthenticationError(DeviceError):
    """The device refused the key or the password."""


class DevicePythonError(DeviceError):
    """The device has no Python, or one that is too old."""


class DeviceRuntimeError(DeviceError):
    """The device has no numpy, no runtime for the model, or a clash between them."""


class DeviceDiskFullError(DeviceError):
    """No space left on the device."""


class DeviceProtocolError(DeviceError):
    """Something else than the agent answers on the stream."""


class AgentDiedError(DeviceError):
    """The agent ended, or its link; the agent's last stderr lines are in the message."""


class AgentCrashedError(AgentDiedError):
    """The agent certainly ended, and not in an orderly way: by a signal or with a fault."""


class DeviceTimeoutError(DeviceError):
    """No answer from the device within the deadline."""


class InferenceTimeoutError(DeviceTimeoutError):
    """The agent lives, but an inference does not end."""


class DeviceBusyError(DeviceError):
    """Another campaign holds the device's lease."""


class DeviceChangedError(DeviceError):
    """The device came back with another fingerprint: its answers may differ from those before."""


class DeviceAwayError(DeviceError):
    """The device stays away; what it was asked is to be asked of another one.

    Also where the original, which runs on this machine, can't be loaded again.
    """


class InferenceFailedError(DeviceError):
    """The device can't answer on an input: inference failed, or each time the agent died.

    The original model on the host, too, may fail on one, such as a clip too short for it.
    """
