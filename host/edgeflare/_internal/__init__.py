"""Small functions that several packages of the host share; not part of the public API."""
