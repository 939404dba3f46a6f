"""Campaigns in PostgreSQL, and samples in an object store."""
