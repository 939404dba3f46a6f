"""The example project's tests are run by tests of ours, as a user's."""

collect_ignore = ["pytest_project"]
