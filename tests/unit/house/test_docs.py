"""What the documents say is so."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from boto3.dynamodb.conditions import Key

from harness.wire.template import read_template, resources

ROOT: Final = Path(__file__).resolve().parents[3]
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK: Final = re.compile(r"\]\((?!https?://)(?P<path>[^)#]+)(?:#[^)]*)?\)")
_ANCHOR: Final = re.compile(r"\]\((?!https?://)([^)#]*)#([^)]+)\)")
_TARGET: Final = re.compile(r"^    make ([a-z]+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    linked = [match["path"] for match in _LINK.finditer(page.read_text())]

    assert [path for path in linked if not (page.parent / path).exists()] == []


def _anchors(page: Path) -> set[str]:
    """What a link may name within a page, as GitHub makes it from the headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = (
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    )
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_into_pages_lead_to_a_heading(page: Path) -> None:
    linked = [(path, anchor) for path, anchor in _ANCHOR.findall(page.read_text()) if not path or path.endswith(".md")]

    assert [link for link in linked if link[1] not in _anchors(page.parent / link[0] if link[0] else page)] == []


def test_first_screen_says_what_it_is_shows_it_and_names_two_commands() -> None:
    first = (ROOT / "README.md").read_text().partition("\n## ")[0]

    assert first.count("![") == 1
    assert _TARGET.findall(first) == ["demo", "test"]
    assert len(first.split("\n\n")[1].split(". ")) <= 3
    assert len(first.splitlines()) <= 30


def test_every_page_can_be_reached_from_readme() -> None:
    found, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in found and page.suffix == ".md":
            found.add(page)
            waiting += [(page.parent / match["path"]).resolve() for match in _LINK.finditer(page.read_text())]

    assert sorted(set(PAGES) - found) == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_exist(page: str) -> None:
    named = set(_TARGET.findall((ROOT / page).read_text()))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert named
    assert named <= targets


_WRITTEN: Final = re.compile(r"(?<![<>=])(?:> |--kubeconfig |--ca-file |--registry-changes )([a-z][a-z0-9.-]*)")


def test_files_that_pages_write_here_are_ignored_by_git() -> None:
    code = "\n".join(line for page in PAGES for line in page.read_text().splitlines() if line.startswith("    "))
    written = set(_WRITTEN.findall(code)) - {"kind"}

    assert {"report.json", "service.yaml", "demo.kubeconfig", "two.pem", "clusters.yaml"} <= written
    git = subprocess.run(
        ["git", "check-ignore", "--no-index", *sorted(written)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert sorted(written - set(git.stdout.split())) == []


def test_decisions_are_numbered_each_once() -> None:
    *names, index = [path.name for path in sorted((ROOT / "docs/adr").glob("*.md"))]

    assert index == "README.md"
    assert [name for name in names if not re.match(r"\d{4}-", name)] == []
    assert len({name[:4] for name in names}) == len(names)


def test_index_of_decisions_lists_every_one() -> None:
    folder = ROOT / "docs/adr"
    listed = {match["path"] for match in _LINK.finditer((folder / "README.md").read_text())}

    assert [path.name for path in sorted(folder.glob("0*.md")) if path.name not in listed] == []


class _TableBetweenVersions:
    """Answers the first query while a change is under way (slices of two versions), the next ones after it."""

    def __init__(self) -> None:
        self.requests: list[Mapping[str, Any]] = []

    def query(self, **request: Any) -> Mapping[str, Any]:
        self.requests.append(request)
        first: dict[str, Any] = {"slice": 0, "version": 7, "slices": 2, "nodes": [{"ip": "10.0.0.1"}]}
        if "ExclusiveStartKey" not in request:
            return {"Items": [first], "LastEvaluatedKey": {"upstream": "u", "slice": 0}}
        late = len(self.requests) > 2
        return {"Items": [{"slice": 1, "version": 7 if late else 8, "nodes": [{"ip": "10.0.0.2"}]}]}


class _TableWithDeleted:
    def query(self, **request: Any) -> Mapping[str, Any]:
        return {"Items": [{"slice": 0, "version": 3, "slices": 1, "nodes": [], "deleted": True}]}


def _published_reader() -> Any:
    page = (ROOT / "docs/upstreams.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"Key": Key}
    exec(compile(code, "upstreams.md", "exec"), names)
    return names["read_upstream"]


def test_published_reader_reads_again_while_versions_are_mixed() -> None:
    table = _TableBetweenVersions()

    assert _published_reader()(table, "u") == [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]
    assert len(table.requests) == 4


def test_published_reader_sees_a_removed_upstream_as_gone() -> None:
    assert _published_reader()(_TableWithDeleted(), "u") is None


def test_deploy_page_lists_every_parameter_of_the_template() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", (ROOT / "docs/deploy.md").read_text(), re.MULTILINE)
    parameters = read_template()["Parameters"]

    assert sorted(name for row in rows for name in re.findall(r"\w+", row)) == sorted(parameters)


def test_environment_for_sam_local_sets_only_what_the_template_declares() -> None:
    declared = read_template()["Globals"]["Function"]["Environment"]["Variables"]
    set_ones = json.loads((ROOT / "docs/sam-local.json").read_text())["Parameters"]

    assert set_ones
    assert set_ones.keys() <= declared.keys()


def _cost() -> tuple[str, dict[str, Any]]:
    """The page, and what its program defines."""
    page = (ROOT / "docs/cost.md").read_text()
    names: dict[str, Any] = {}
    exec(compile(page.partition("```python\n")[2].partition("```")[0], "cost.md", "exec"), names)
    return page, names


def test_cost_page_shows_what_its_formula_gives() -> None:
    page, names = _cost()
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (.+) \|$", page, re.MULTILINE)

    assert len(rows) == 4
    for *given, shown in rows:
        dollars = names["dollars_a_month"](*map(int, given))
        assert [f"{value:.2f}" for value in [*dollars.values(), sum(dollars.values())]] == shown.split(" | ")
    quiet = [names["dollars_a_month"](clusters, services, 0, 0) for clusters, services in ((1, 100), (100, 50_000))]
    one, hundred = (sum(each.values()) - each["Secrets"] for each in quiet)
    assert f"one quiet cluster costs **{one:.2f}**, and 100 clusters of 500 Services cost **{hundred:.2f}**" in page
    assert one <= 25.0
    assert hundred <= 45.0


def test_cost_page_compares_what_its_formula_gives() -> None:
    page, names = _cost()
    function, containers, pods = (names[name] for name in ("function", "containers", "pods"))
    shown = dict(
        re.findall(r"^\| (an? (?:function|pod).+?|(?:one|two) containers?.*?) \| (\d+\.\d\d) \|", page, re.MULTILINE)
    )

    addresses = 2 * names["HOURS"] * names["ADDRESS_HOUR"]
    assert {name: float(dollars) for name, dollars in shown.items()} == {
        "a function, 512 MB on arm64": round(function(), 2),
        "a function, 1,024 MB on x86_64": round(function(1.0, "x86_64"), 2),
        "one container, 0.25 vCPU and 0.5 GB": round(containers(1), 2),
        "two containers": round(containers(2), 2),
        "two containers without public addresses": round(containers(2) - addresses, 2),
        "a pod in each of 5 clusters": round(pods(5), 2),
        "a pod in each of 20 clusters": round(pods(20), 2),
    }
    assert f"Two containers cost {containers(2) - function():.2f} more than the function" in page
    assert f"Up to {int(function() / pods(1))} clusters this is less than the function" in page


def test_cost_page_reckons_with_the_reads_and_metrics_that_tests_count() -> None:
    _, names = _cost()
    stand_by = (ROOT / "tests/unit/session/test_stand_by.py").read_text()
    telemetry = (ROOT / "tests/unit/telemetry/test_metrics.py").read_text()

    assert f"assert reads == {names['STAND_BY_READS']}\n" in stand_by
    cheap = re.search(r"pays_for_what_alarms_need.*?for name in \((.*?)\n        \)", telemetry, re.DOTALL)
    assert cheap is not None
    # Two of them are written in one hour of the day.
    assert len(re.findall(r'"\w+"', cheap[1])) - 2 == names["METRICS"][0]


def test_cost_page_reckons_with_what_the_bench_measured() -> None:
    measured = dict(re.findall(r"^\| DynamoDB units of a (.+?) \| (.+?) \|", _benchmarks(), re.MULTILINE))
    _, names = _cost()

    def of(what: str) -> list[float]:
        (found,) = [text for title, text in measured.items() if title.startswith(what)]
        return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", found)]

    # Writes and reads; the bench rounds to tenths, the page to units.
    session, minute = names["SESSION"], names["MINUTE"]
    assert of("quiet session") == [session[0], minute[0], session[1], minute[1], names["RENEWALS"]]
    alone_written, _, alone_read, _ = of("pod that comes")
    assert (alone_written, alone_read) == names["POD"]
    assert tuple(map(round, of("Service with two pods"))) == names["SERVICE"]
    assert tuple(map(round, of("Service in a resync"))) == names["LISTED"]
    assert f"| CPU of a session that finds a master | {names['AT_ONCE']} s |" in _benchmarks()


def test_cost_page_says_in_words_what_its_formula_and_the_bench_give() -> None:
    page, names = _cost()
    write, read, minutes = names["WRITE"], names["READ"], names["MINUTES"]
    hand_overs, function = minutes / names["SESSION_MINUTES"], 0.5 * names["GB_SECOND"]["arm64"]
    in_stream, in_window = (
        float(re.findall(pattern, _benchmarks())[0])
        for pattern in (
            r"each pod, and each Service .*?\| ([\d.]+) and",
            r"one of 20 in a window \| 10 and ([\d.]+) written",
        )
    )
    of_clusters = names["units"](names["MINUTE"]) + names["units"](names["SESSION"]) / names["SESSION_MINUTES"]
    listed = 1000 * 30 * names["units"](names["LISTED"])
    at_once = names["AT_ONCE"] / names["CPU"][0.5]
    before = names["dollars_a_month"](1, 100, 0, 0, names["function"](1.0, "x86_64"), cheap=False)
    resumes, first = (
        re.findall(pattern, _benchmarks())[0]
        for pattern in (r"session that resumes \| (\d+) MB", r"first list included \| (\d+) MB")
    )
    for said in (
        f"cost {sum(before.values()) - before['Secrets']:.2f} for one quiet cluster",
        f"stands by: {hand_overs * names['HAND_OVER'] * function:.2f}.",
        f"{names['AT_ONCE'] * 1000:.0f} ms of CPU each, {at_once:.1f} s at 512 MB: {(minutes - hand_overs) * at_once * function:.2f} a month",
        f"Standing by costs {names['STAND_BY_READS'] * names['HOURS'] * read:.2f}.",
        f"a quiet one costs {minutes * of_clusters * 100:.0f} cents a month, and {listed * 100:.0f} for each 1,000 Services",
        f"{minutes * names['MINUTE'][0] * write * 100:.0f} cents a month",
        f"Reading costs {minutes * names['MINUTE'][1] * read * 100:.0f} cents",
        f"one by one cost {1e6 * names['units'](names['POD']):.2f} dollars, and {1e6 * (in_stream * write + read):.2f} where one comes",
        f"a million costs {1e6 * (in_window * write + read):.2f}.",
        f"a session that resumes takes {resumes} MB",
        f"100,000 endpoints takes {first} MB",
        f"{0.6e-6 * names['SECONDS']:.1f} GB, {0.5 * 0.6e-6 * names['SECONDS']:.2f} a month",  # a line of 0.6 KB each second
    ):
        assert said in " ".join(page.split()), said
    of_zones = re.findall(r"^\| .+? \| ([\d,]+) \| (\d+) \| ([\d.]+) \|$", page, re.MULTILINE)
    assert (
        [float(dollars) for *_, dollars in of_zones]
        == [
            int(above.replace(",", "")) * names["RECORD_SET"]
            + min(int(zones), 25) * 0.5
            + max(0, int(zones) - 25) * 0.1
            for above, zones, _ in of_zones
        ]
        == [135.5, 60.5, 20.0]
    )


def _benchmarks() -> str:
    return (ROOT / "docs/benchmarks.md").read_text()


def test_cost_page_counts_the_alarms_of_the_template() -> None:
    alarms = resources(read_template(), "AWS::CloudWatch::Alarm")

    assert _cost()[1]["ALARMS"] == len(alarms)


def _words(page: Path) -> int:
    """Words that people read: no marks of tables, and no comments."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    return sum(bool(re.search(r"[A-Za-z0-9]", word)) for word in text.split())


def test_pages_have_at_most_fifty_thousand_words() -> None:
    inside = (ROOT / "docs/adr", ROOT / "docs/proof")
    words = {page: _words(page) for page in (ROOT / "docs").rglob("*.md") if page.parent not in inside}

    assert sum(words.values()) <= 50_000, "which page says what another one says?"
