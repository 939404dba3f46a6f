"""Sessions: requests to the agent on a device, their replies, and reconnecting after a lost link."""
