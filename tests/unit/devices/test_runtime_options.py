"""The inventory's options of a runtime are those that the agent's runtime takes."""

from edgeflare.devices.runtimes import BUILT_IN, DeviceOptions, options_of
from edgeflare_agent.runtimes import RUNTIMES


def test_options_of_the_inventory_are_the_agents() -> None:
    assert set(BUILT_IN) == set(RUNTIMES)
    known = {option for runtime in BUILT_IN for option in options_of(runtime)}
    assert known == set(DeviceOptions.__annotations__)
