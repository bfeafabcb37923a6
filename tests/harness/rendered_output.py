"""An output of the proxies' configuration, in a directory of a test."""

from pathlib import Path

from kubesync_local.proxies.files.commands import Command
from kubesync_local.proxies.files.output import Output
from kubesync_local.proxies.formats.form import Form
from kubesync_local.proxies.formats.nginx import Nginx
from kubesync_local.proxies.left_out import LeftOut
from kubesync_local.proxies.renderer import Renderer, WhenEmpty
from kubesync_local.proxies.servers import Snapshot

KEY = "prod/shop/web/80/TCP"


def an_upstream(*ips: str, key: str = KEY, version: int = 1, ready: bool = True) -> dict[str, Snapshot]:
    return {key: Snapshot(key, version, tuple({"ip": ip, "port": 80, "ready": ready} for ip in ips))}


class Place:
    """An output in a directory, a clock that stands still, and what was said."""

    def __init__(
        self,
        directory: Path,
        check: str = "",
        reload: str = "",
        when_empty: WhenEmpty = WhenEmpty.BACKUP,
        form: Form | None = None,
    ) -> None:
        self.path = directory if form is not None else directory / "up.conf"
        self.log = directory.parent / f"{directory.name}.log"
        self.time = 100.0
        self.said: list[str] = []
        self.output = Output(
            Renderer(
                form or Nginx(), "", when_empty, self.said.append, LeftOut(None, self.said.append, lambda: self.time)
            ),
            self.path,
            directory=form is not None,
            check=Command(check) if check else None,
            reload=Command(reload.replace("LOG", str(self.log))) if reload else None,
            said=self.said.append,
            now=lambda: self.time,
        )
        self.output.open()

    @property
    def servers(self) -> list[str]:
        return [
            line.split()[1].rstrip(";") for line in self.path.read_text().splitlines() if line.startswith("    server")
        ]

    @property
    def reloads(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


RELOAD = "echo reloaded >>LOG"
