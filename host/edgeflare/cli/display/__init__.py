"""What the commands show: progress, tables, devices and boards."""
