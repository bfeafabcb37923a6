"""What runs only on a person's machine and in tests: the ``kubesync`` command, the demo, and the stand-ins.

cli        the command line: options, parsing, errors as one line
page       `kubesync ui`: the same facts in a browser
commands   one module for each command, in groups
documents  the JSON that commands answer with
sessions   a session that a command runs: its progress, its end, a look
check      the steps of ``kubesync cluster check``
demo       ``kubesync demo``, and the stand-ins as one stack
workplace  what every command works with: settings, AWS clients, access to clusters
terminal   answers for people and programs: tables, JSON, remarks, logs
standins   an API server, Route 53 and DynamoDB

Imports go from top to bottom: cli, page, commands, then the next five, then the last two. Contracts in pyproject.toml hold it.
"""

import sys

if sys.version_info < (3, 12):  # noqa: UP036 - an older one would report a syntax error in some file
    _found = ".".join(map(str, sys.version_info[:3]))
    raise SystemExit(f"kubesync: needs Python 3.12 or newer, and {sys.executable} is {_found}: docs/install.md")
