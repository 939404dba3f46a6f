from edgeflare_lab.testing import *
