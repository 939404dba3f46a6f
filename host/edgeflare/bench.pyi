from edgeflare_bench import *
