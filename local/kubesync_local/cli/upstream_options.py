"""The options of ``kubesync upstream``."""

from typing import Final

from kubesync_local.cli.parser import Commands, add_output, add_sort

_OPTIONS: Final = "[,weight=N][,backup]"


def add_upstream_commands(commands: Commands) -> None:
    """``kubesync upstream add|list|show|remove|hold|release``."""
    upstream = commands.add_parser(
        "upstream", help="named upstreams: several Services, clusters and nodes behind one name"
    )
    actions = upstream.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_add(actions)
    listed = actions.add_parser(
        "list",
        help="all named upstreams",
        description="Lists all named upstreams: their members, their versions in the table, and who holds or includes them.",
    )
    add_sort(listed, ("name", "upstream", "members", "version", "nodes", "held_by", "included_in", "state"))
    add_output(listed)
    show = actions.add_parser("show", help="one named upstream: its members, what each contributes, and what is wrong")
    show.add_argument("name", metavar="NAME", help="the named upstream's name")
    add_output(show)
    remove = actions.add_parser(
        "remove",
        help="remove a named upstream that nothing refers to",
        description="Refused while another named upstream includes it, or somebody holds it.",
    )
    remove.add_argument("name", metavar="NAME", help="the named upstream's name")
    for action, text in (
        ("hold", "mark a named upstream as used by WHO: it cannot be removed until WHO releases it"),
        ("release", "remove the mark that WHO uses a named upstream"),
    ):
        command = actions.add_parser(action, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.add_argument("name", metavar="NAME", help="the named upstream's name")
        command.add_argument("--by", metavar="WHO", required=True, help="who uses it, such as the name of a deployment")


def _add_add(actions: Commands) -> None:
    add = actions.add_parser(
        "add",
        help="register a named upstream, or change one with --replace",
        description="Proxies find it in the upstreams table under named/NAME. A weight (default: 1) applies to each node of a "
        "member. Backups are used when no other node works. Each option may be given several times.",
    )
    add.add_argument("name", metavar="NAME", help="a DNS label")
    add.add_argument("--replace", action="store_true", help="change the one of this name; give all its members again")
    add.add_argument(
        "--service", metavar="KEY[,...]", action="append", default=[],
        help=f"cluster/namespace/service/port[/PROTOCOL]{_OPTIONS}: a Service's upstream",
    )  # fmt: skip
    add.add_argument(
        "--static", metavar="NODE", action="append", default=[],
        help=f"10.0.0.1:80{_OPTIONS} or [2001:db8::1]:80{_OPTIONS}: a node outside all clusters",
    )  # fmt: skip
    add.add_argument(
        "--upstream", metavar="OTHER", action="append", default=[], help=f"NAME{_OPTIONS}: another named upstream"
    )
