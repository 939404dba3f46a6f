"""The checks of a triage; each yields the causes that it finds."""
