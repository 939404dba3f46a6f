"""What is said of a bench's numbers; its tables are in `reports`."""
