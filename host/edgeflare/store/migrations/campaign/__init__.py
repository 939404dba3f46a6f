"""Migrations of campaigns."""
