"""The command line: what can be typed, how it is parsed, and how errors become one line and an exit status."""
