"""Lists all runs and campaigns below a folder, in a browser on this machine."""
