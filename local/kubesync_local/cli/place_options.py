"""Options of every command that reads tables: which deployment, AWS region and profile. They win over the environment."""

import argparse
import os
from typing import Final

from kubesync_local.cli.help_pages import pages
from kubesync_local.cli.parser import commands_of

VARIABLES: Final = {"--deployment": "KUBESYNC_DEPLOYMENT", "--region": "AWS_REGION", "--profile": "AWS_PROFILE"}
"""Each option, and the variable that says the same."""
_HELP: Final = {
    "--deployment": ("NAME", "the deployment (default: $KUBESYNC_DEPLOYMENT, or main)"),
    "--region": ("REGION", "the AWS region (default: $AWS_REGION, or that of the profile)"),
    "--profile": ("NAME", "a profile of the AWS SDK's files (default: $AWS_PROFILE)"),
}
_WITHOUT: Final = ("demo", "local up", "local env", "local down", "help", "completion")


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Give them to every command that is added already."""
    for words, command in pages(parser):
        if words in _WITHOUT or commands_of(command) is not None:
            continue
        place = command.add_argument_group("where")
        for option, (metavar, text) in _HELP.items():
            place.add_argument(option, metavar=metavar, dest=VARIABLES[option], default=argparse.SUPPRESS, help=text)


def go_to_place(arguments: argparse.Namespace) -> None:
    """Put what the options say into the environment, where settings and the AWS SDK look for it."""
    for variable in VARIABLES.values():
        if given := getattr(arguments, variable, ""):
            os.environ[variable] = given
