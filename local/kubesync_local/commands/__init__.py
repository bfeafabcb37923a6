"""One module for each command: ``run(arguments) -> int``. Each folder is a group of commands; no folder imports another."""
