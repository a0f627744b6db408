"""Finds operations by plain words, and describes them: as a signature, in full, and as tools. Pure."""
