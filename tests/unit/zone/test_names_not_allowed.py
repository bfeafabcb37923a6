"""I4: IAM denies a batch for one of its names; the names are found, the rest goes, and nothing of what stands is lost."""

from math import ceil, log2

import pytest

from harness.deployment import JOURNAL, ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.route53.zones import BatchChange
from kubesync.domain.errors import BatchRefusedError, StoreUnavailableError, ZoneOutcomeUnknownError
from kubesync_local.standins.route53.zone.model import Limits
from simulation.cluster import ScriptedCluster

JOURNALS = "_kubesync-test-*"
GOOD = (JOURNALS, "good*")
NO_ANSWER = ZoneOutcomeUnknownError("no answer")


def fail(error: Exception) -> None:
    raise error


def own_changes(batch: tuple[BatchChange, ...]) -> list[str]:
    """Names of a batch, without the journal's."""
    return sorted({change.key.name.split(".")[0] for change in batch if change.key != JOURNAL})


def reasons(deployment: Deployment) -> dict[str, str]:
    """Code of each open key's mark."""
    marks = {name: deployment.state(name).opened for name in deployment.open()}
    return {name: mark.code if mark is not None else "" for name, mark in marks.items()}


def test_i4_name_that_is_denied_is_refused_and_the_rest_of_its_batch_goes_at_once(deployment: Deployment) -> None:
    deployment.route53.allowed = GOOD
    deployment.want_many({"good1": "10.0.0.1", "bad": "10.0.0.2", "good2": "10.0.0.3"}, seconds=2)
    assert sorted(deployment.sets()) == ["good1 A", "good2 A"]
    assert reasons(deployment) == {"first": "NameNotAllowed", "bad": "NameNotAllowed"}
    assert deployment.problems() == []
    reason = deployment.open()["bad"]
    assert reason == (
        "IAM does not allow this name: AccessDenied: not authorized to perform ChangeResourceRecordSets on Z1"
    )
    assert deployment.zone_report(deployment.end())["reasons"] == {"NameNotAllowed": 2}


def test_one_denied_name_takes_the_batch_and_the_journal_alone(deployment: Deployment) -> None:
    deployment.route53.allowed = GOOD
    deployment.want("bad", "10.0.0.1")
    deployment.pass_time()
    assert [own_changes(batch) for batch in deployment.sent] == [["bad"], []]
    inflight = deployment.inflight()
    assert inflight is not None
    assert inflight.units == (), "units that are not sent are not announced"
    assert f"batch={inflight.batch}" in deployment.journal
    assert deployment.state("bad").applied == {}


def test_denied_name_is_tried_again_later_and_later_and_goes_once_it_is_allowed(deployment: Deployment) -> None:
    deployment.route53.allowed = GOOD
    deployment.want("bad", "10.0.0.1")
    deployment.want("good", "10.0.0.2")
    deployment.pass_time()
    sent = len(deployment.sent)
    deployment.pass_time(120)
    # After 5, 10, 20, 40 seconds, with a quarter of jitter; each time the batch, and the journal alone.
    assert 6 <= len(deployment.sent) - sent <= 10
    deployment.route53.allowed = None
    deployment.pass_time(120)
    assert deployment.sets() == {"bad A": ("10.0.0.1",), "good A": ("10.0.0.2",)}
    assert (deployment.open(), deployment.announced() != "") == ({}, True)
    assert deployment.end().clean


def test_i1_deletion_that_is_denied_stays_as_it_is_until_it_is_allowed(deployment: Deployment) -> None:
    deployment.want("bad", "10.0.0.1")
    deployment.want("good", "10.0.0.2")
    deployment.pass_time()
    deployment.route53.allowed = GOOD
    deployment.delete("bad")
    deployment.delete("good")
    deployment.pass_time()
    assert deployment.sets() == {"bad A": ("10.0.0.1",)}
    state = deployment.state("bad")
    assert [record_set.values for record_set in state.applied.values()] == [("10.0.0.1",)]
    assert len(state.claims) == 1, "nobody else is given the name"
    assert reasons(deployment) == {"bad": "NameNotAllowed"}
    assert deployment.end().clean
    deployment.start()
    assert reasons(deployment) == {"bad": "NameNotAllowed"}
    deployment.route53.allowed = None
    deployment.pass_time(60)
    assert (deployment.sets(), deployment.open()) == ({}, {})


@pytest.mark.parametrize("denied", [(), ("good*",)], ids=["nothing", "the journal"])
def test_zone_in_which_the_journal_is_denied_is_blocked_with_few_calls(
    deployment: Deployment, denied: tuple[str, ...]
) -> None:
    deployment.want("good", "10.0.0.1")
    deployment.pass_time()
    deployment.route53.allowed = denied
    sent = len(deployment.sent)
    for number in range(30):
        deployment.want(f"s{number:02d}", "10.0.0.2")
    deployment.pass_time(170)
    (problem,) = deployment.problems()
    assert problem.startswith("AccessDenied")
    assert [len(own_changes(batch)) for batch in deployment.sent[sent:]] == [30, 0, 0, 0]  # then once a minute
    assert deployment.open() == {f"s{number:02d}": "" for number in range(30)}, "no key is refused for it"
    deployment.route53.allowed = None
    deployment.pass_time(61)
    assert (len(deployment.sets()), deployment.open(), deployment.problems()) == (31, {}, [])
    report = deployment.end()
    assert (report.clean, deployment.zone_report(report)["reasons"]) == (True, {})


def test_one_key_whose_zone_was_denied_is_not_refused_once_the_zone_is_allowed(deployment: Deployment) -> None:
    deployment.route53.allowed = ()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(30)
    deployment.route53.allowed = None
    deployment.pass_time(40)
    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    assert deployment.zone_report(deployment.end())["reasons"] == {}


def test_i4_three_denied_names_among_200_are_found_in_few_batches() -> None:
    deployment = Deployment(settings={"batch_elements": 1000})
    deployment.start()
    many, bad = 200, {17, 101, 199}
    names = {n: f"bad{n}" if n in bad else f"good{n}" for n in range(many)}
    deployment.want("good", "10.0.0.1")
    deployment.pass_time()
    deployment.route53.allowed = GOOD
    deployment.at("batch sent", lambda: deployment.hold(6))
    deployment.want("good", "10.0.0.2")
    deployment.pass_time(2)
    for n, name in names.items():
        deployment.want(name, f"10.1.0.{n % 250 + 1}")
    deployment.pass_time(7)
    assert len(deployment.sets()) == 1 + many - len(bad)
    assert reasons(deployment) == {f"bad{n}": "NameNotAllowed" for n in sorted(bad)}
    batches = [own_changes(batch) for batch in deployment.sent[2:]]
    with_units = [batch for batch in batches if batch]
    assert len(with_units[0]) == many
    assert len(with_units) <= 2 * len(bad) * ceil(log2(many)) + 1
    # The journal alone once for each batch that was denied: those that hold a bad name.
    denied = [batch for batch in with_units if any(name.startswith("bad") for name in batch)]
    assert len(batches) - len(with_units) == len(denied)
    deployment.close()


# --- an earlier try that has no answer ---


@pytest.mark.parametrize("landed", [True, False])
def test_i1_batch_in_doubt_that_is_denied_may_have_landed(deployment: Deployment, *, landed: bool) -> None:
    def lose_and_deny() -> None:
        deployment.route53.allowed = GOOD
        raise NO_ANSWER

    deployment.at("batch sent", lose_and_deny, after=landed)
    deployment.want("bad", "10.0.0.1")
    deployment.pass_time(4)
    if landed:
        assert deployment.sets() == {"bad A": ("10.0.0.1",)}
        assert deployment.state("bad").applied == deployment.state("bad").intended
        assert deployment.open() == {}
    else:
        assert deployment.sets() == {}
        assert reasons(deployment) == {"bad": "NameNotAllowed"}
    assert deployment.end().clean


def test_i1_copy_of_a_denied_batch_that_is_on_its_way_is_shut_out_before_anything_is_decided(
    deployment: Deployment,
) -> None:
    late: list[tuple[BatchChange, ...]] = []

    def delay_and_deny() -> None:
        late.append(deployment.sent[-1])
        deployment.route53.allowed = GOOD
        raise NO_ANSWER

    deployment.at("batch sent", delay_and_deny)
    deployment.want("bad", "10.0.0.1")
    deployment.pass_time(4)
    assert reasons(deployment) == {"bad": "NameNotAllowed"}
    assert len(deployment.calls("journal swapped")) == 1
    # It was accepted when its name was still allowed, and arrives now.
    with pytest.raises(BatchRefusedError, match="Tried to create resource record set"):
        deployment.route53.change(ZONE_ID, late[0], "", "a person")
    assert deployment.sets() == {}


@pytest.mark.parametrize("landed", [True, False])
def test_journal_alone_may_have_no_answer(deployment: Deployment, *, landed: bool) -> None:
    deployment.route53.allowed = GOOD
    deployment.at("batch sent", lambda: fail(NO_ANSWER), after=landed, skip=0 if landed else 1)
    deployment.want("bad", "10.0.0.1")
    deployment.pass_time(4)
    assert [own_changes(batch) for batch in deployment.sent] == [["bad"], [], []]
    assert reasons(deployment) == {"bad": "NameNotAllowed"}
    assert deployment.end().clean


def test_journal_that_somebody_moved_while_it_was_tried_alone_decides_nothing(deployment: Deployment) -> None:
    deployment.want("good", "10.0.0.1")
    deployment.pass_time()
    deployment.route53.allowed = GOOD
    deployment.at("batch sent", lambda: deployment.journal_by_hand(epoch=1), skip=1)
    deployment.want("bad", "10.0.0.1")
    deployment.pass_time()
    assert [own_changes(batch) for batch in deployment.sent] == [["good"], ["bad"], [], ["bad"], []]
    assert reasons(deployment) == {"bad": "NameNotAllowed"}


def test_i1_denied_batch_is_not_sent_again_once_something_else_may_be_announced(deployment: Deployment) -> None:
    """The journal alone is announced, and the zone does not learn that it is. Then the name is allowed, and the session is killed."""

    def fail_and_allow() -> None:
        deployment.route53.allowed = None
        raise StoreUnavailableError("no answer; and then the credentials have expired")

    deployment.route53.allowed = GOOD
    deployment.at("batch announced", fail_and_allow, after=True, skip=1)
    deployment.want("bad", "10.0.0.1")
    deployment.at("batch sent", deployment.kill, after=True)
    deployment.pass_time(30)
    assert deployment.sets() == {"bad A": ("10.0.0.1",)}
    assert f"batch={deployment.announced()}" in deployment.journal, "what has landed is what is announced"
    deployment.start()
    deployment.pass_time(60)
    assert (deployment.sets(), deployment.open()) == ({"bad A": ("10.0.0.1",)}, {})
    assert deployment.state("bad").applied == deployment.state("bad").intended
    assert deployment.end().clean


# --- together with the other rules ---


def test_full_zone_takes_allowed_deletions_beside_a_denied_name() -> None:
    deployment = Deployment(limits=Limits(sets_of_zone=2 + 1 + 2))  # SOA, NS, journal, and two of ours
    deployment.start()
    for name in ("good1", "bad"):
        deployment.want(name, "10.0.0.1")
    deployment.pass_time()
    deployment.route53.allowed = GOOD
    for name in ("good2", "good3", "bad2"):
        deployment.want(name, "10.0.0.1")
    deployment.delete("bad")
    deployment.pass_time(20)
    assert sorted(deployment.sets()) == ["bad A", "good1 A"]
    (problem,) = deployment.problems()
    assert "the zone is full" in problem
    deployment.delete("good1")
    deployment.pass_time(60)
    assert len(deployment.sets()) == 2
    assert {"bad", "bad2"} <= deployment.open().keys()
    deployment.route53.allowed = None
    deployment.pass_time(600)
    assert len(deployment.sets()) == 2
    assert "bad" not in deployment.open()
    deployment.close()


def test_full_zone_without_a_journal_finds_the_denied_name() -> None:
    deployment = Deployment(limits=Limits(sets_of_zone=2))
    deployment.route53.allowed = GOOD
    deployment.start()
    deployment.want("bad", "10.0.0.1")
    deployment.want("good", "10.0.0.1")
    deployment.pass_time(20)
    assert reasons(deployment)["bad"] == "NameNotAllowed"
    (problem,) = deployment.problems()
    assert "the zone is full" in problem
    deployment.close()


def test_i4_cluster_beside_one_whose_names_are_denied_is_published_in_the_same_second(deployment: Deployment) -> None:
    other: ScriptedCluster = deployment.add_cluster("c1")
    deployment.pass_time(61)
    deployment.route53.allowed = (JOURNALS, "*.c1.example.com")
    for number in range(20):
        deployment.want(f"s{number}", "10.0.0.1")
    other.apply("web", a_service(cluster_ips=("10.0.0.9",)))
    deployment.pass_time()
    assert deployment.sets() == {"web.shop.svc.c1.example.com A": ("10.0.0.9",)}


def test_i4_flood_of_denied_names_does_not_hold_up_another_namespace() -> None:
    deployment = Deployment(settings={"batch_elements": 1000})
    deployment.start()
    deployment.want("good", "10.0.0.1")
    deployment.pass_time()
    deployment.route53.allowed = GOOD
    deployment.at("batch sent", lambda: deployment.hold(0.2), times=None)  # five requests a second, as Route 53 allows
    for number in range(300):
        deployment.apply(f"bad{number:03d}", a_service(cluster_ips=("10.0.0.2",)), namespace="flood")
    deployment.want("good1", "10.0.0.1")  # in the same batch
    deployment.pass_time(12)
    assert "good1 A" in deployment.sets()
    for number in range(2, 12):
        deployment.want(f"good{number}", "10.0.0.1")
        deployment.pass_time(3)  # a window of a second, a batch or two of the flood
        assert f"good{number} A" in deployment.sets(), number
    # The flood is worked off meanwhile: each of its names is refused once, and then waits.
    deployment.pass_time(400)
    reasons_given = deployment.zone_report(deployment.end())["reasons"]
    assert reasons_given["NameNotAllowed"] >= 300
    deployment.close()


def flooded() -> Deployment:
    """Five requests a second, as Route 53 allows; ``good`` stands, and from now on only such names are allowed."""
    deployment = Deployment(settings={"batch_elements": 1000})
    deployment.start()
    deployment.want("good", "10.0.0.1")
    deployment.pass_time()
    deployment.route53.allowed = GOOD
    deployment.at("batch sent", lambda: deployment.hold(0.2), times=None)
    return deployment


def test_i4_denied_names_of_two_namespaces_do_not_hold_up_a_third() -> None:
    deployment = flooded()
    for namespace in ("one", "two"):
        deployment.apply("bad", a_service(cluster_ips=("10.0.0.2",)), namespace=namespace)
    deployment.want("good1", "10.0.0.1")
    deployment.pass_time(6)
    assert sorted(deployment.sets()) == ["good A", "good1 A"]
    sent = len(deployment.sent)
    deployment.pass_time(60)
    # After 5, 10, 20, 40 seconds, with a quarter of jitter; each time the batch of a namespace, and the journal alone.
    assert len(deployment.sent) - sent <= 20
    assert deployment.zone_report(deployment.end())["reasons"]["NameNotAllowed"] >= 2
    deployment.close()


def test_i9_flood_of_denied_names_of_many_namespaces_is_parted_from_the_rest() -> None:
    deployment = flooded()
    for number in range(300):
        service = a_service(cluster_ips=("10.0.0.2",))
        deployment.apply(f"bad{number:03d}", service, namespace=f"flood{number % 30}")
    deployment.want("good1", "10.0.0.1")  # in the same batch
    deployment.pass_time(90)
    assert "good1 A" in deployment.sets()
    for number in range(2, 6):
        deployment.want(f"good{number}", "10.0.0.1")
        deployment.pass_time(3)
        assert f"good{number} A" in deployment.sets(), number
    deployment.close()


def test_i9_namespace_with_one_denied_name_is_not_held_up_by_those_of_another() -> None:
    deployment = flooded()
    deployment.want("bad", "10.0.0.1")
    deployment.pass_time(5)
    assert reasons(deployment) == {"bad": "NameNotAllowed"}
    for number in range(300):
        deployment.apply(f"bad{number:03d}", a_service(cluster_ips=("10.0.0.2",)), namespace="flood")
    deployment.pass_time(20)  # both go apart now
    for number in range(1, 11):
        deployment.want(f"good{number}", "10.0.0.1")
        deployment.pass_time(5)  # a window of a second, a batch or two of the flood, and perhaps another try of ``bad``
        assert f"good{number} A" in deployment.sets(), number
    deployment.close()
