"""What is said of inspections' numbers; their tables are in `reports`."""
