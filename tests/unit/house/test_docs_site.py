"""The site of docs/: its pages, their links, and that it loads nothing from elsewhere."""

from pathlib import Path

import pytest

import docs_site
from docs_site import ROOT, loaded_from_elsewhere, navigation, pages, staged


def test_every_page_of_docs_is_in_the_navigation() -> None:
    listed = {
        str(page)
        for section in navigation(pages())
        for links in section.values()
        for link in (links if isinstance(links, list) else [{"": links}])
        for page in link.values()
    }

    assert sorted({path.name for path in (ROOT / "docs").glob("*.md")} - listed) == []


def test_links_lead_to_the_same_pages_and_files_that_are_none_become_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docs_site, "ROOT", tmp_path)
    (tmp_path / "docs/adr").mkdir(parents=True)
    readme, page, decision = tmp_path / "README.md", tmp_path / "docs/dns.md", tmp_path / "docs/adr/0001.md"
    readme.write_text("[names](docs/dns.md#types), [here](#top), [AWS](https://aws.example), [events](events.json)")
    page.write_text("[home](../README.md), ![picture](picture.svg)")
    decision.write_text("[names](../dns.md)")
    (tmp_path / "events.json").write_text("{}")
    (tmp_path / "docs/picture.svg").write_text("<svg/>")
    places = {
        readme: Path("index.md"),
        page: Path("dns.md"),
        decision: Path("adr/0001.md"),
        tmp_path / "docs/picture.svg": Path("picture.svg"),
    }

    assert staged(readme, places) == "[names](dns.md#types), [here](#top), [AWS](https://aws.example), events"
    assert staged(page, places) == "[home](index.md), ![picture](picture.svg)"
    assert staged(decision, places) == "[names](../dns.md)"
    page.write_text("[gone](gone.md)")
    with pytest.raises(SystemExit, match=r"docs/dns.md: gone.md does not exist"):
        staged(page, places)


def test_what_a_browser_would_fetch_from_other_hosts_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="https://aws.example">no</a><script src="https://cdn.example/x.js"></script><link href="css/own.css">'
    )
    (tmp_path / "main.css").write_text("a { background: url(//fonts.example/a.woff) } b { background: url(own.png) }")

    assert list(loaded_from_elsewhere(tmp_path)) == [
        "index.html: https://cdn.example/x.js",
        "main.css: //fonts.example/a.woff",
    ]
