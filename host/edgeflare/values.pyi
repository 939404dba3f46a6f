from edgeflare.answers.values import *
