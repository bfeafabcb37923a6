"""An answer without any upstream: when a file stays, when it is replaced, and what is said."""

from pathlib import Path

import pytest

from kubesync_local.proxies.belief import Asked, BelievedOutput, UnknownNameError
from kubesync_local.proxies.files.commands import Command
from kubesync_local.proxies.files.output import Output
from kubesync_local.proxies.formats.envoy import EnvoyDirectory, EnvoyFile
from kubesync_local.proxies.formats.form import Form
from kubesync_local.proxies.formats.haproxy import Haproxy
from kubesync_local.proxies.formats.json_form import JsonForm
from kubesync_local.proxies.formats.nginx import Nginx
from kubesync_local.proxies.left_out import LeftOut
from kubesync_local.proxies.renderer import Renderer, WhenEmpty
from kubesync_local.proxies.servers import Snapshot

KEY = "prod/shop/web/80/TCP"
FULL = {KEY: Snapshot(KEY, 1, ({"ip": "10.0.0.1", "port": 80, "ready": True},))}
ABSENT = {KEY: Snapshot(KEY, 0, present=False)}
FORMS = [Nginx(), Haproxy(), JsonForm(), EnvoyFile()]


class _Source:
    interval_seconds = 1.0
    problem = ""
    proven = False
    known: tuple[str, ...] = ()

    def read(self) -> dict[str, Snapshot]:
        raise NotImplementedError

    def costs(self) -> str:
        raise NotImplementedError


class _Place:
    """A file or directory as one process after the other writes it."""

    def __init__(self, path: Path, form: Form) -> None:
        self.path = path
        self.form = form
        self.said: list[str] = []
        self.waits = False
        self.source = _Source()

    def output(self, reload: Command | None = None) -> Output:
        left_out = LeftOut(None, self.said.append, lambda: 0.0)
        renderer = Renderer(self.form, "", WhenEmpty.BACKUP, self.said.append, left_out)
        made = Output(
            renderer, self.path, directory=isinstance(self.form, EnvoyDirectory), check=None, reload=reload,
            said=self.said.append, now=lambda: 0.0,
        )  # fmt: skip
        made.open()
        return made

    def believed(self, *keys: str, reload: Command | None = None) -> BelievedOutput:
        asked = Asked(keys, [], ["TCP"])
        return BelievedOutput(asked, self.source, self.output(reload), self.said.append, lambda _: "", waits=self.waits)


def test_reload_that_is_owed_is_done_while_the_answer_is_not_believed(tmp_path: Path) -> None:
    place, log = _Place(tmp_path / "up", Nginx()), tmp_path / "log"
    place.output().offer(FULL)
    (tmp_path / ".up.kubesync-reload").touch()  # a killed process left it

    assert not place.believed(KEY, reload=Command(f"echo x >>{log}")).offer(ABSENT)
    assert log.read_text() == "x\n"


@pytest.mark.parametrize("form", FORMS)
def test_file_with_servers_has_something_to_lose_and_one_without_has_not(form: Form, tmp_path: Path) -> None:
    place = _Place(tmp_path / "up", form)
    assert not place.output().holds_servers
    place.output().offer({})
    assert not place.output().holds_servers
    place.output().offer(ABSENT)
    assert not place.output().holds_servers
    place.output().offer({KEY: Snapshot(KEY, 5, present=False)})
    assert not place.output().holds_servers

    place.output().offer(FULL)
    assert place.output().holds_servers


def test_directory_with_servers_has_something_to_lose(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("[1]")
    place = _Place(tmp_path, EnvoyDirectory(tmp_path))
    assert not place.output().holds_servers
    place.output().offer({})
    assert not place.output().holds_servers

    place.output().offer(FULL)
    assert place.output().holds_servers


@pytest.mark.parametrize("form", FORMS)
def test_file_that_somebody_else_wrote_has_something_to_lose_and_a_blank_one_has_not(
    form: Form, tmp_path: Path
) -> None:
    path = tmp_path / "up"
    path.write_text("user nginx;\n")
    assert _Place(path, form).output().holds_servers

    path.write_text("\n")
    assert not _Place(path, form).output().holds_servers


def test_file_stays_with_one_line_until_an_item_is_seen_and_a_deleted_one_is_enough(tmp_path: Path) -> None:
    place = _Place(tmp_path / "up", Nginx())
    place.output().offer(FULL)
    believed = place.believed()

    assert not believed.offer({})
    assert not believed.offer({})
    assert "server 10.0.0.1:80;" in place.path.read_text()
    said = f"no TCP upstream is in the table: {place.path} stays as it is; is the name right, and the deployment?"
    assert place.said == [said]

    place.source.proven = True
    assert believed.offer({})
    assert "server" not in place.path.read_text()
    assert place.said == [said]


def test_once_an_item_was_seen_the_source_decides(tmp_path: Path) -> None:
    place = _Place(tmp_path / "up", Nginx())
    place.source.proven = True
    believed = place.believed()

    assert believed.offer(FULL)
    assert believed.offer({})
    assert "server" not in place.path.read_text()


def test_without_an_earlier_file_it_is_rendered_and_said_once(tmp_path: Path) -> None:
    place = _Place(tmp_path / "up", Nginx())
    place.waits = True
    believed = place.believed(KEY)

    assert believed.offer(ABSENT)
    assert believed.offer(ABSENT)
    assert "server 192.0.2.1:9 down;" in place.path.read_text()
    assert place.said == [f"{KEY} is not in the table, or deleted: rendered without nodes"]


def test_i5_unknown_name_ends_the_first_offer_after_the_others_and_one_that_the_file_has_does_not(
    tmp_path: Path,
) -> None:
    other = "prod/shop/wbe/80/TCP"
    asked = {**FULL, other: Snapshot(other, 0, present=False)}
    place = _Place(tmp_path / "up", Nginx())
    place.source.proven, place.source.known = True, (KEY,)

    with pytest.raises(UnknownNameError) as raised:
        place.believed(KEY, other).offer(asked)
    assert str(raised.value) == (
        f"{other} is not in the table; is the name right, and the deployment? --ignore-not-found waits for it"
    )
    assert "server 10.0.0.1:80;" in place.path.read_text()
    assert "wbe" not in place.path.read_text()

    place.output().offer(asked)
    believed = place.believed(KEY, other)
    assert believed.offer(asked)
    place.source.known = ()
    assert believed.offer(asked), "only the first offer is judged"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked([], [], ["TCP"]), "no TCP upstream is in the table"),
        (Asked([], ["a", "b"], ["UDP", "TCP"]), "no UDP or TCP upstream of cluster a or b is in the table"),
        (Asked([KEY, KEY], [], ["TCP"]), f"{KEY} is not in the table"),
        (Asked(["named/a", "named/b"], [], ["TCP"]), "none of named/a, named/b is in the table"),
        (
            Asked([f"named/a{number}" for number in range(5)], [], ["TCP"]),
            "none of named/a0, named/a1, named/a2 and 2 more is in the table",
        ),
    ],
)
def test_line_names_what_was_asked_for(asked: Asked, said: str) -> None:
    assert asked.stays(Path("up.conf")) == (f"{said}: up.conf stays as it is; is the name right, and the deployment?")
