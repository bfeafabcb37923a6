"""Mechanisms that keep a proxy from being pointed anywhere or filled by anybody: I9, and I10 for those who watch over it."""

from typing import Final

from mutation.mutant import Mutant

_BOUNDS = "unit/proxies/test_bounds.py::"
_LEFT_OUT = "unit/proxies/test_left_out.py::"
_STATUS = "unit/proxies/test_status.py::"
_SERVERS = "kubesync_local/proxies/servers.py"
_BELIEF = "kubesync_local/proxies/belief.py"
_UNKNOWN = "unit/proxies/test_belief.py::test_i5_unknown_name_ends_the_first_offer_after_the_others_and_one_that_the_file_has_does_not"
_RENDERER = "kubesync_local/proxies/renderer.py"

OF_PROXIES: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="watch-waits-for-misspelt-names",
        without="a name that neither table nor file knows ends the first render",
        invariants="I10",
        file=_BELIEF,
        old="            self._refuse_unknown(snapshots)\n",
        new="",
        caught_by=(_UNKNOWN,),
    ),
    Mutant(
        name="rendered-names-are-misspelt",
        without="a name that the file has is known, whatever the table has lost",
        invariants="I5",
        file=_BELIEF,
        old="{*self._source.known, *rendered,",
        new="{*self._source.known,",
        caught_by=(_UNKNOWN,),
    ),
    Mutant(
        name="misspelt-name-takes-the-others-away",
        without="the others are rendered before an unknown name ends the first render",
        invariants="I10",
        file=_BELIEF,
        old="        if self._source.proven:  # a",
        new="        if not self._source.proven:  # a",
        caught_by=(_UNKNOWN,),
    ),
    Mutant(
        name="forbidden-addresses-are-rendered",
        without="addresses that no pod has are rendered",
        invariants="I9",
        file=_SERVERS,
        old="            if (place := (address, server.port)) not in standing:\n",
        new="            if (place := (address, server.port)) in ():\n",
        caught_by=(
            _BOUNDS + "test_network_allows_an_address_that_no_pod_has_only_if_it_holds_no_others",
            _BOUNDS + "test_server_that_stands_is_taken_and_said_and_another_port_of_it_is_not",
        ),
    ),
    Mutant(
        name="nothing-stands",
        without="servers that a file has already are taken away if no pod has their address",
        invariants="I9",
        file=_RENDERER,
        old="            standing=self._standing.get(key, ()),\n",
        new="            standing=(),\n",
        caught_by=(_BOUNDS + "test_server_stands_while_its_node_is_there_also_if_it_is_not_ready_for_a_while",),
    ),
    Mutant(
        name="what-stood-may-return",
        without="a server whose node was gone stands for ever",
        invariants="I9",
        file=_RENDERER,
        old="        self._standing.pop(key, None)\n        if chosen",
        new="        if chosen",
        caught_by=(_BOUNDS + "test_server_stands_while_its_node_is_there_also_if_it_is_not_ready_for_a_while",),
    ),
    Mutant(
        name="wide-networks-allow-all",
        without="a network that holds all addresses also allows those that no pod has",
        invariants="I9",
        file="kubesync_local/proxies/bounds.py",
        old="network.holds(address) and _kind(network) == why",
        new="network.holds(address)",
        caught_by=(_BOUNDS + "test_network_allows_an_address_that_no_pod_has_only_if_it_holds_no_others",),
    ),
    Mutant(
        name="last-servers-outside",
        without="last servers of a file stay outside the allowed networks",
        invariants="I9",
        file=_RENDERER,
        old='        if outside := self._outside.pop(key, ""):\n',
        new='        if outside := "":\n',
        caught_by=(_BOUNDS + "test_last_servers_outside_the_networks_do_not_stay_and_are_said_once",),
    ),
    Mutant(
        name="any-nodes-first",
        without="of too many nodes draining ones and backups stay like all others",
        invariants="I9",
        file=_SERVERS,
        old="key=lambda server: (server.draining, server.tier))\n",
        new="key=lambda server: (server.address, server.port))\n",
        caught_by=(_BOUNDS + "test_most_nodes_are_ready_ones_of_the_first_tiers_then_draining_ones",),
    ),
    Mutant(
        name="left-out-every-second",
        without="numbers of nodes that are left out are said at each change",
        invariants="I10",
        file="kubesync_local/proxies/left_out.py",
        old="        if self._now() >= self._numbers_said_at + _NUMBERS_SAID_SECONDS:\n",
        new="        if True:\n",
        caught_by=(_LEFT_OUT + "test_numbers_that_change_are_said_once_a_minute_also_when_nothing_more_changes",),
    ),
    Mutant(
        name="mark-behind-a-link",
        without="the mark of a reload that is left to do is made where a symbolic link leads",
        invariants="I9",
        file="kubesync_local/proxies/files/writing.py",
        old="os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC",
        new="os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC",
        caught_by=(_BOUNDS + "test_mark_is_not_made_behind_a_link",),
    ),
    Mutant(
        name="status-behind-a-link",
        without="the status file is written where a symbolic link leads",
        invariants="I9",
        file="kubesync_local/proxies/files/status.py",
        old="        temporary.replace(path)\n",
        new="        path.write_text(text)\n",
        caught_by=(_STATUS + "test_status_replaces_a_link_and_never_follows_it",),
    ),
    Mutant(
        name="status-only-of-changes",
        without="the status file is not written while nothing changes",
        invariants="I10",
        file="kubesync_local/proxies/files/status.py",
        old=" or self._clock.monotonic() >= self._due_at:",
        new=":",
        caught_by=(_STATUS + "test_status_is_written_every_ten_seconds_when_nothing_changes",),
    ),
    Mutant(
        name="signal-leaves-a-command",
        without="a signal while a reload is started leaves it running",
        invariants="I10",
        file="kubesync_local/proxies/files/commands.py",
        old="            with held_back():  #",
        new="            if True:  #",
        caught_by=(
            "unit/proxies/test_proxy_commands.py::test_signal_while_the_command_is_started_leaves_nothing_of_it",
        ),
    ),
)
