"""Classes that a model confuses or treats unequally, and what deployment added."""
