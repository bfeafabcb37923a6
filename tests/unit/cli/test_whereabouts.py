"""What a message about tables says of where they were looked for."""

import pytest

from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.workplace.whereabouts import located

REACHED = "DynamoDB cannot be reached"


@pytest.mark.parametrize(
    ("variables", "message", "end"),
    [
        pytest.param(
            {},
            REACHED,
            " in mars-1 at https://dynamodb.mars-1.amazonaws.com",
            id="the region's endpoint",
        ),
        pytest.param(
            {"AWS_ENDPOINT_URL": "https://user:secret@dynamo.example.com/x?token=1"},
            REACHED,
            " in mars-1 at https://dynamo.example.com/x",
            id="an endpoint of one's own",
        ),
        pytest.param(
            {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1"},
            REACHED,
            " in mars-1 at http://127.0.0.1:1; is `kubesync local up` running?",
            id="a stand-in that does not run",
        ),
        pytest.param(
            {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1"},
            "a DynamoDB call on table t failed: 501",
            " in mars-1 at http://127.0.0.1:1; is that the address of DynamoDB?",
            id="another server",
        ),
    ],
)
def test_message_says_where_and_what_to_check(
    variables: dict[str, str], message: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_PROFILE", "KUBESYNC_DEPLOYMENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "mars-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    said = str(located(StoreUnavailableError(message)))

    assert said == f"{message}; looked for deployment main (tables kubesync-main-*){end}"
