"""A survey: inputs far from the seeds at which the original is sure, and what both models say."""
