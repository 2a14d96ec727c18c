from lockcheck.cli.entry import entry

entry()
