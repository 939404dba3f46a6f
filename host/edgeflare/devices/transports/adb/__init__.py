"""adb: phones, the adb server, and shells on a phone."""
