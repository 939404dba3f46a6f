# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .agreement import assert_agrees as assert_agrees
from .running_test import RUNNING_TEST as RUNNING_TEST, RunningTest as RunningTest
