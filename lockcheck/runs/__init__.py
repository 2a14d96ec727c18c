"""The folder of a run: where each of its files is, and what can be read back."""
