"""Two models brought to one understanding of inputs and outputs, and the checks of that."""
