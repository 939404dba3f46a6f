from edgeflare.answers.oracles import *
from edgeflare.answers.parts import Margins as Margins
