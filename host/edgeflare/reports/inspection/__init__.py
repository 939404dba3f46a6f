"""What inspection tells of the original and of a campaign, in tables."""
