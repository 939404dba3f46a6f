"""Every error of the mutation operators, one tree.

MutationError
├── SampleError            the sample is not what the operator takes
├── ParamsError            parameters are missing, unknown or outside an operator's limits
├── RangeError             an operator was built, or declared, with ranges it can't draw from
├── OperatorOutputError    an operator returned something that is no valid sample
├── UnknownOperatorError   no operator has this name
├── MutatorLoadError       a user's operator can't be loaded
└── RecordError            a JSON object is no recorded mutation
"""


class MutationError(Exception):
    """Base of all errors of the mutation operators; its text is one clear sentence for the user."""


class SampleError(MutationError):
    """The sample has a dtype or a shape that the operator doesn't take."""


class ParamsError(MutationError):
    """Parameters are missing, unknown, of the wrong type or outside the operator's limits."""


class RangeError(MutationError):
    """A range is empty, or reaches beyond what the operator can do."""


class OperatorOutputError(MutationError):
    """An operator returned something that is no valid sample of its input's shape."""


class UnknownOperatorError(MutationError):
    """No operator has this name."""


class MutatorLoadError(MutationError):
    """A user's operator can't be loaded, or takes a name that is taken."""


class RecordError(MutationError):
    """A JSON object is not what `Mutation.to_json` writes."""
