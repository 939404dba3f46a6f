# The public names; read at run time, too.

from .classes import classes_document as classes_document
from .coverage import coverage_document as coverage_document
from .importance import importance_document as importance_document
from .priority import priority_document as priority_document
from .units import units_document as units_document
