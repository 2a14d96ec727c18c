"""The commands of campaigns."""
