"""The ranking of candidate deployed models by how hard they are to make deviate."""
