"""Textbook versions of what the package computes: numpy only, slow, obvious."""
