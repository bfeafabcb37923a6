"""A sample of ``make chaos``: every section, and what the undisturbed run itself has to look like.

``make test`` plays a few cases of each section, ``make thorough`` the whole short run, ``make check`` that of sections with few cases in
``make test``. A mutant that a few cases miss is caught there.
"""

from collections.abc import Sequence

import pytest

from chaos.every_section import BY_NUMBER
from chaos.faults import items, items_ends
from chaos.faults.crash import undisturbed
from chaos.faults.unknown import EFFECTS, SECTION as UNKNOWN
from chaos.sections import Effort, Outcome, Section, sample
from chaos.stories.oracle import judge_quiet
from chaos.stories.play import Play
from chaos.stories.story import FOREIGN, STORY, ZONE, a_world
from chaos.stories.verdict import judge
from chaos.tally import Tally, table
from harness.golden.item_kinds import KINDS as KINDS_OF_ITEMS
from kubesync.domain.dns.records import RecordKey, RecordSet
from simulation.gate import Gate, kill_at
from simulation.writes import KINDS

SEED = 20261120
# Sections with their short run here, and how many of its cases `make test` plays; the others have tests where they belong.
# None of 4, real processes: taking_over/test_killed.py kills some in `make test`. 14 needs three days to compare two of them.
FEW = {1: 12, 2: 8, 3: 15, 4: 0, 10: 3, 13: 8, 14: 1, 15: 12, 16: 12, 17: 4, 18: 6, 19: 2, 20: 3, 21: 6, 22: 6, 23: 4}
OF_ITS_OWN = [
    pytest.param(number, id=BY_NUMBER[number].title, marks=pytest.mark.soak if few > 1 else ())
    for number, few in FEW.items()
]
SIMULATED = [pytest.param(number, id=BY_NUMBER[number].title) for number, few in FEW.items() if few]


@pytest.mark.parametrize("number", SIMULATED)
def test_i1_i2_i3_hold_under_a_few_faults(number: int) -> None:
    section = BY_NUMBER[number]
    short = section.cases(Effort(SEED, short=True))
    few = sample(short, FEW[number], SEED)
    assert len(few) == min(FEW[number], len(short))
    assert _violated(section, few) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("number", OF_ITS_OWN)
def test_i1_i2_i3_hold_under_a_sample_of_faults(number: int) -> None:
    section = BY_NUMBER[number]
    assert _violated(section, section.cases(Effort(SEED, short=True))) == {}


def _violated(section: Section, cases: Sequence[object]) -> dict[str, list[str]]:
    return {str(case): lines for case in cases if (lines := _lines(section, case))}


def _lines(section: Section, case: object) -> list[str]:
    played = section.play(case)
    return played.violations if isinstance(played, Outcome) else played


def test_short_run_has_every_kind_of_write_with_every_effect() -> None:
    tried = {UNKNOWN.fault(case) for case in UNKNOWN.cases(Effort(SEED, short=True))}
    wanted = {f"{kind}: {effect}" for kind in KINDS for effect in EFFECTS}
    assert wanted - tried == set()


def test_make_chaos_runs_every_section_of_faults() -> None:
    assert sorted(BY_NUMBER) == list(range(1, 24))
    assert all(section.cases(Effort(SEED, short=True)) for section in BY_NUMBER.values())


def test_every_kind_of_item_is_deleted_and_restored() -> None:
    tried = {items.fault(case).rpartition(":")[0] for case in items.SECTION.cases(Effort(SEED, short=True))}
    assert tried == items_ends.ENDS.keys()
    kinds = {kind.removesuffix(items_ends.REMOVED) for kind in items_ends.ENDS}
    assert kinds | items_ends.NOT_HERE.keys() == KINDS_OF_ITEMS.keys()


def test_undisturbed_run_leads_to_these_records() -> None:
    records = undisturbed(SEED).end.world.route53.records(ZONE)
    shown = {
        f"{key.name} {key.type}": record_set.values
        for key, record_set in records.items()
        if key.type not in ("SOA", "NS") and not key.name.startswith(("_kubesync", "_http"))
    }
    assert shown == {
        "api.shop.svc.prod.example.com CNAME": ("api.example.org.",),
        "ext.shop.svc.prod.example.com CNAME": ("again.example.org.",),
        "kubernetes.default.svc.prod.example.com A": ("10.0.0.1",),
        "late.shop.svc.prod.example.com A": ("10.0.3.1",),
        "lb.shop.svc.prod.example.com A": ("10.0.1.3",),
        "mail.example.com MX": ("10 mx.example.net.",),
        "shop.example.com A": ("10.0.1.1",),
        "taken.example.com A": ("192.0.2.200",),
        "taker.shop.svc.prod.example.com A": ("10.0.2.4",),
        "web.shop.svc.prod.example.com A": ("10.0.1.1",),
        "web.shop.svc.prod.example.com TXT": ('"written by a person"',),
    }


def test_harness_sees_a_record_that_is_lost_or_touched() -> None:
    wanted = undisturbed(SEED)
    spoiled = wanted.end.copy()
    ours = RecordKey(ZONE, "shop.example.com", "A")
    theirs = RecordKey(ZONE, "mail.example.com", "MX")
    for key in (ours, theirs):
        spoiled.world.route53.by_hand("DELETE", key, spoiled.world.route53.records(ZONE)[key])
    spoiled.world.route53.by_hand("CREATE", RecordKey(ZONE, "stray.example.com", "A"), RecordSet(60, ("192.0.2.9",)))
    lines = judge(spoiled, wanted.normal)
    assert [line.partition(":")[0] for line in lines] == [
        "zone ZSHARED mail.example.com MX",
        "zone ZSHARED shop.example.com A",
        "zone ZSHARED stray.example.com A",
        "foreign record set mail.example.com MX was touched",
    ]
    assert len(judge_quiet(spoiled.world, FOREIGN)) == 4


def test_killed_session_leaves_something_to_mend() -> None:
    play = Play(a_world(), STORY)
    gate = Gate("unused")

    def arm(made: Gate) -> None:
        nonlocal gate
        gate = made
        batch = next(call.number for call in undisturbed(SEED).calls if call.what.startswith("ChangeResource"))
        kill_at(made, batch, before=False)

    play.one_session(arm)
    assert gate.killed
    assert gate.calls[-1].what.startswith("ChangeResourceRecordSets")
    assert any("mark left over" in line for line in judge_quiet(play.world, FOREIGN))


def test_table_counts_kinds_of_faults_and_ends_with_the_number_of_violations() -> None:
    first = Tally(1, "killed", "I1", tried=10, violated=2, seconds=1.5)
    first.faults.update({"lease: done": 6, "lease: late": 3, "fence: done": 1})
    first.figures = ["3 bad: 9 batches", "1 bad: 4 batches"]
    shown = [line.split() for line in table([first, Tally(2, "paused", "I2", tried=5)]).splitlines()]
    assert shown[1:4] == [
        ["1", "killed", "I1", "10", "8", "1.5"],
        ["2", "paused", "I2", "5", "5", "0.0"],
        ["all", "15", "13"],
    ]
    assert shown[5:9] == [["section", "1,", "tried:"], ["done", "late"], ["lease", "6", "3"], ["fence", "1", "-"]]
    assert shown[10:13] == [
        ["section", "1,", "measured:"],
        ["1", "bad:", "4", "batches"],
        ["3", "bad:", "9", "batches"],
    ]
    assert shown[-1] == ["invariants", "violated:", "2"]
