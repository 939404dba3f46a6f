"""Migrations of trigger corpora."""
