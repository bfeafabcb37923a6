"""One module for each command: ``run(arguments) -> int``."""
