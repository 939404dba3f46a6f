from edgeflare_whitebox import *
