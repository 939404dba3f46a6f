from edgeflare.answers.measures import *
