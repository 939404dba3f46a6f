"""Provisioning: probing a device and uploading agent and models to it."""
