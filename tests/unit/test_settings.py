"""Settings from the environment, and what is said about those that make no sense."""

import pytest

from harness.stack import a_boto_session
from kubesync.bootstrap.application import Application
from kubesync.domain.errors import UsageError
from kubesync.settings import Settings


def test_defaults_are_those_of_the_documentation() -> None:
    settings = Settings.from_environment({})
    assert (settings.deployment, settings.shard, settings.tables) == ("main", "0", "kubesync-main")
    assert (settings.max_runtime_seconds, settings.drain_margin_seconds, settings.window_seconds) == (840, 15, 1)
    assert (settings.lease_seconds, settings.lease_renew_seconds, settings.lease_write_seconds) == (15, 5, 10)
    assert (settings.batch_elements, settings.batch_characters) == (1000, 32_000)


def test_variables_are_read_and_empty_or_foreign_ones_are_not() -> None:
    settings = Settings.from_environment(
        {
            "KUBESYNC_DEPLOYMENT": "blue-1",
            "KUBESYNC_MAX_RUNTIME_SECONDS": "60.5",
            "KUBESYNC_PAGE_LIMIT": "",
            "KUBESYNC_NO_SUCH_THING": "x",
            "MAX_RUNTIME_SECONDS": "1",
        }
    )
    assert settings.tables == "kubesync-blue-1"
    assert settings.max_runtime_seconds == 60.5
    assert settings.page_limit == 250


@pytest.mark.parametrize(
    ("environment", "megabytes", "room", "page", "longest"),
    [
        ({}, 1024, 22_369_621, 4 << 20, 256 << 20),
        ({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128"}, 128, 2_796_202, 699_050, 32 << 20),
        ({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "10240"}, 10240, 223_696_213, 4 << 20, 512 << 20),
        (
            {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "10240", "KUBESYNC_MEMORY_MEGABYTES": "512"},
            512,
            11_184_810,
            2_796_202,
            128 << 20,
        ),
    ],
)
def test_lists_may_take_a_share_of_the_memory(
    environment: dict[str, str], megabytes: int, room: int, page: int, longest: int
) -> None:
    settings = Settings.from_environment(environment)
    assert settings.memory_megabytes == megabytes
    assert (settings.list_room_bytes, settings.page_bytes, settings.list_bytes) == (room, page, longest)


def test_prefix_of_the_tables_can_be_chosen() -> None:
    assert Settings(table_prefix="other", deployment="main").tables == "other"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEPLOYMENT", "Blue"),
        ("DEPLOYMENT", "-a"),
        ("DEPLOYMENT", "a" * 25),
        ("DEPLOYMENT", 'a",owner=b'),
        ("SHARD", "a-b"),
        ("SHARD", "123456789"),
        ("MAX_RUNTIME_SECONDS", "0"),
        ("MAX_RUNTIME_SECONDS", "soon"),
        ("MAX_RUNTIME_SECONDS", "nan"),
        ("WINDOW_SECONDS", "-1"),
        ("WINDOW_SECONDS", "61"),
        ("LEASE_SECONDS", "inf"),
        ("BATCH_ELEMENTS", "1001"),
        ("BATCH_ELEMENTS", "9"),
        ("BATCH_CHARACTERS", "32001"),
        ("PAGE_LIMIT", "0"),
        ("AUDIT_RETENTION_DAYS", "1.5"),
    ],
)
def test_value_that_is_not_valid_names_its_variable_in_one_line(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^KUBESYNC_{name}=") as refused:
        Settings.from_environment({f"KUBESYNC_{name}": value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "times", [{"LEASE_RENEW_SECONDS": "10"}, {"LEASE_WRITE_SECONDS": "16"}, {"LEASE_SECONDS": "9"}]
)
def test_lease_that_could_not_be_kept_is_refused(times: dict[str, str]) -> None:
    with pytest.raises(
        UsageError, match="LEASE_RENEW_SECONDS < KUBESYNC_LEASE_WRITE_SECONDS <= KUBESYNC_LEASE_SECONDS"
    ):
        Settings.from_environment({f"KUBESYNC_{name}": value for name, value in times.items()})


def test_shard_of_an_invocation_wins_over_the_environment_and_is_checked() -> None:
    environment = {"KUBESYNC_SHARD": "2", "KUBESYNC_SHARDS": "4"}
    assert Settings.from_environment(environment).shard == "2"
    assert Settings.from_environment(environment, shard="3").shard == "3"
    with pytest.raises(UsageError, match="KUBESYNC_SHARD='no!' is not valid: 1 to 8 lower-case letters and digits"):
        Settings.from_environment(environment, shard="no!")


def test_what_an_account_may_send_is_divided_by_the_shards() -> None:
    found = {}
    for shards in (1, 5, 16):
        accounts = Application(Settings(shards=shards), session=a_boto_session()).zone_accounts()
        buckets = accounts._new_buckets()
        found[shards] = [(round(each._rate, 4), round(each._burst, 4)) for each in (buckets.requests, buckets.changes)]
    assert found == {
        1: [(5.0, 25.0), (1000.0, 1000.0)],
        5: [(1.0, 5.0), (200.0, 200.0)],
        16: [(0.3125, 1.5625), (62.5, 62.5)],
    }
