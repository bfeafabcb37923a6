"""The options of ``kubesync render``."""

from kubesync_local.cli.parser import Commands, count


def add_render_command(commands: Commands) -> None:
    """``kubesync render nginx|envoy|haproxy|json``."""
    render = commands.add_parser(
        "render",
        help="upstreams as configuration of nginx, Envoy or HAProxy, or as JSON",
        description="Writes upstreams as configuration of a proxy: whole files, each replaced in one step. With --watch it goes on with "
        "every change. If the table cannot be read, or has nothing of what you ask for, the last configuration is left unchanged. docs/proxies.md "
        "shows each proxy.",
    )
    render.add_argument(
        "format", choices=("nginx", "envoy", "haproxy", "json"), metavar="FORMAT", help="nginx, envoy, haproxy or json"
    )
    where = render.add_argument_group("where to (default: standard output)")
    target = where.add_mutually_exclusive_group()
    target.add_argument("--output-file", metavar="PATH", default="", help="replace this file if its text changes")
    target.add_argument(
        "--output-dir", metavar="DIR", default="", help="envoy: a file for each upstream, and clusters.json"
    )
    which = render.add_argument_group("which upstreams (default: all of protocol TCP)")
    which.add_argument(
        "--upstream", metavar="KEY", action="append", default=[],
        help="such as prod/shop/web/80/TCP or named/shop; may be given up to 100 times",
    )  # fmt: skip
    which.add_argument(
        "--cluster", metavar="NAME", action="append", default=[],
        help="only upstreams of this cluster's Services; may be given several times",
    )  # fmt: skip
    which.add_argument(
        "--namespace", "--namespaces", metavar="NS", action="append", dest="namespaces",
        help="only upstreams of Services in these namespaces: NS[,NS...]; may be given several times",
    )  # fmt: skip
    which.add_argument(
        "--protocol", choices=("TCP", "UDP", "SCTP"), action="append", default=[],
        help="only upstreams of this protocol, and named ones; may be given several times",
    )  # fmt: skip
    which.add_argument(
        "--ignore-not-found", action="store_true",
        help="an --upstream or --cluster that the table does not know is no error; --watch waits for it",
    )  # fmt: skip
    nodes = render.add_argument_group("which nodes (default: all)")
    nodes.add_argument(
        "--max-nodes", type=count, metavar="N",
        help="at most so many of each upstream, ready ones first; a line says how many are left out",
    )  # fmt: skip
    nodes.add_argument(
        "--allow-cidr", metavar="CIDR", action="append",
        help="only nodes in these networks: CIDR[,CIDR...]; may be given several times. Without it all but loopback, link-local and "
        "other addresses that no pod has",
    )  # fmt: skip
    nodes.add_argument("--zone", metavar="ZONE", default="", help="nodes of other availability zones become backups")
    nodes.add_argument(
        "--when-empty", choices=("backup", "empty", "keep"), default="backup",
        help="if no node is ready: nodes that are not ready (backup, the default), none (empty), or the last servers (keep)",
    )  # fmt: skip
    how = render.add_argument_group("how")
    how.add_argument(
        "--option", metavar="LINE", action="append", default=[],
        help="nginx, haproxy: a line at the beginning of each upstream, such as 'least_conn;'; may be given several times",
    )  # fmt: skip
    how.add_argument(
        "--server-option", metavar="TEXT", action="append", default=[],
        help="nginx, haproxy: added to each server, such as 'max_fails=0' or 'check'; may be given several times",
    )  # fmt: skip
    watch = render.add_argument_group("with every change")
    watch.add_argument("--watch", action="store_true", help="go on until SIGTERM or Ctrl-C")
    watch.add_argument(
        "--check", metavar="CMD", default="",
        help="run before the new file replaces the old one; {} and $KUBESYNC_FILE are its path. If it fails, the old file stays",
    )  # fmt: skip
    watch.add_argument(
        "--reload",
        metavar="CMD",
        default="",
        help="run after a change, at most once a second; repeated until it succeeds",
    )
    watch.add_argument(
        "--status", metavar="FILE", default="",
        help="with --watch: keep this JSON file up to date, for a supervisor: ok or failing, since when, what was left out",
    )  # fmt: skip
