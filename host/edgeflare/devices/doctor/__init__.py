"""`edgeflare devices check`: the checks of a device, a module for each topic."""
