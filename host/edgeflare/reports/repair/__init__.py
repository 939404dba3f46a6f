"""What repairs do, in tables and charts, and sets to train a model again with."""
