"""SSH: configuration, authentication, host keys, streams and uploads."""
