# The public names; read at run time, too.

from .agreement import assert_agrees as assert_agrees
