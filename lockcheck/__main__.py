from lockcheck.cli import entry

entry()
