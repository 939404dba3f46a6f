"""Every error of the agent, one tree.

AgentError
├── ProtocolError          the byte stream is not what the protocol says
├── RequestError           a well-formed frame asks for something impossible
├── ModelError             the model file can't be used
├── RuntimeMissingError    no runtime for this kind of model on this device
├── NumpyClashError        the runtime and the installed numpy don't work together
└── InferenceError         the runtime failed while it ran the model

Each class has a `code`, the word that travels in an ``error`` frame; the host maps it back.
"""


class AgentError(Exception):
    """Base of all errors of the agent; its text is one clear sentence for the user."""

    code = "internal"


class ProtocolError(AgentError):
    """The byte stream is not what the protocol says (bad magic, checksum, version or length)."""

    code = "protocol"


class RequestError(AgentError):
    """A well-formed request asks for something that can't be done (unknown verb, bad option)."""

    code = "bad-request"


class ModelError(AgentError):
    """The model file can't be used: not of its kind, damaged, or of an unsupported shape."""

    code = "bad-model"


class RuntimeMissingError(AgentError):
    """No runtime for this kind of model is installed here."""

    code = "no-runtime"


class NumpyClashError(AgentError):
    """The installed runtime was built for another major version of numpy."""

    code = "numpy-clash"


class InferenceError(AgentError):
    """The runtime failed while it ran the model."""

    code = "inference"


class BusyError(AgentError):
    """Another campaign holds this device's lease."""

    code = "busy"
