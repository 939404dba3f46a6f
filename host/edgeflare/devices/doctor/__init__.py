"""`edgeflare devices check`: what is looked at on a device, one module for each kind of thing."""
