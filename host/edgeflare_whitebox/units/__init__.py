"""Which units of the original go with a hypothesis on its inputs (DeepBase)."""
