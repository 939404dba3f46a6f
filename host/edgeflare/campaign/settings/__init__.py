"""The configuration of a campaign: its sections, command line flags, limits and templates."""
