from edgeflare.answers.detections.matching import *
