"""Textbook versions of what the house computes: numpy only, slow, obvious."""
