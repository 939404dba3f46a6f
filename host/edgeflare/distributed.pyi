from edgeflare_lab.distributed import *
