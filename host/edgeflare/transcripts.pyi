from edgeflare.answers.transcripts import *
