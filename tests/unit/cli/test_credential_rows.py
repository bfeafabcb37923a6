"""Which ends of credentials ``kubesync status`` shows, and in which words."""

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_config
from kubesync.aws.tables.control.listeners import StoredCredentials
from kubesync.domain.credential_ends import Credential
from kubesync_local.documents.credential_rows import credential_rows, near_ends
from kubesync_local.workplace.readings import ListenerReadings

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC
DAY = 86_400.0


def table(revision: int = 3) -> ListenerReadings:
    store = MemoryStore(clock=ManualClock())
    ends = {
        Credential.CA: NOW + 31 * DAY,
        Credential.TOKEN: NOW + 30 * DAY - 1,
        Credential.CLIENT_CERTIFICATE: NOW - 2.5 * DAY,
    }
    store.write(ListenerReadings.put_credentials("prod", StoredCredentials(revision, ends), "tx"))
    return ListenerReadings(store)


def test_first_end_comes_first_and_what_is_near_gets_a_line() -> None:
    rows = credential_rows(a_config(revision=3), table(), NOW)
    assert rows == [
        {"what": "client certificate", "ends_at": "2027-01-12T20:00:00.000Z", "days_left": -3},
        {"what": "token", "ends_at": "2027-02-14T07:59:59.000Z", "days_left": 29},
        {"what": "CA", "ends_at": "2027-02-15T08:00:00.000Z", "days_left": 31},
    ]
    assert near_ends("prod", rows, NOW) == [
        ("client certificate of cluster prod ended 2 days ago (2027-01-12)", True),
        ("token of cluster prod ends in 29 days (2027-02-14)", False),
    ]


def test_dates_of_another_revision_are_not_shown() -> None:
    assert credential_rows(a_config(revision=4), table(), NOW) == []


def test_cluster_of_which_nothing_is_known() -> None:
    assert credential_rows(a_config(name="stage", revision=3), table(), NOW) == []
