"""The inventory's options of a runtime are those that the agent's runtime takes."""

from importlib import import_module

from edgeflare.devices.runtimes import BUILT_IN, OPTIONS_OF, DeviceOptions
from edgeflare_agent.runtimes import RUNTIMES


def test_options_of_the_inventory_are_the_agents() -> None:
    assert set(BUILT_IN) == set(RUNTIMES) == set(OPTIONS_OF)
    for runtime, options in OPTIONS_OF.items():
        module, _, name = RUNTIMES[runtime].partition(":")
        assert options == set(getattr(import_module(module), name).known_options), runtime
    assert set().union(*OPTIONS_OF.values()) == set(DeviceOptions.__annotations__)
