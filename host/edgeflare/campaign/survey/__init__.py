"""The survey of a campaign: its stage, and its inputs."""
