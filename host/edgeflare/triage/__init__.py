"""Triage: why a deployed model and its original differ, told by experiments on the host."""
