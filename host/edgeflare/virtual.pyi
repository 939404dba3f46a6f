from edgeflare_lab.virtual import *
