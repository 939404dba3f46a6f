"""Sessions: requests to a device's agent, their replies, and reconnecting after a lost link."""
