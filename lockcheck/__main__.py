from lockcheck.cli.commands import entry

entry()
