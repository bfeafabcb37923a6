import pytest

from kubesync_local.standins.apiserver.objects.resources import ENDPOINTS, ENDPOINTSLICES, SERVICES, Target, parse_path
from kubesync_local.standins.apiserver.objects.schema import ShapeError, arrange
from kubesync_local.standins.apiserver.objects.wire import ContinueToken, bookmark_line, event_line, go_json


def test_json_is_escaped_as_go_does() -> None:
    # U+0085 stays as it is: Go escapes only the line separators of JavaScript.
    assert go_json({"a": "<b> & \u2028\u2029 \u0085 é"}) == (
        '{"a":"\\u003cb\\u003e \\u0026 \\u2028\\u2029 \u0085 é"}'.encode()
    )


def test_event_carries_kind_and_version_before_the_item() -> None:
    assert event_line("ADDED", ENDPOINTSLICES, b'{"metadata":{}}') == (
        b'{"type":"ADDED","object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{}}}\n'
    )


def test_bookmark_of_endpoints_is_as_recorded() -> None:
    assert bookmark_line(ENDPOINTS, 658) == (
        b'{"type":"BOOKMARK","object":{"kind":"Endpoints","apiVersion":"v1","metadata":{"resourceVersion":"658"}}}\n'
    )


def test_continue_token_is_as_recorded() -> None:
    text = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NjUzLCJzdGFydCI6Ii9lZGdlL2Nyb3dkXHUwMDAwIn0"
    token = ContinueToken(653, "edge/crowd\0")
    assert ContinueToken.decode(text) == token
    assert token.encode() == text


@pytest.mark.parametrize("text", ["%%%", "bm90IGpzb24", "e30", "eyJ2IjoidjAiLCJydiI6MSwic3RhcnQiOiJhIn0"])
def test_continue_token_of_another_make_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"base64url|recognize"):
        ContinueToken.decode(text)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/services", Target(SERVICES)),
        ("/api/v1/namespaces/a/services/b", Target(SERVICES, "a", "b")),
        ("/api/v1/namespaces/a/services/b/status", Target(SERVICES, "a", "b", "status")),
        ("/apis/discovery.k8s.io/v1/namespaces/a/endpointslices", Target(ENDPOINTSLICES, "a")),
        ("/api/v1/watch/endpoints", Target(ENDPOINTS, legacy_watch=True)),
        ("/api/v1/watch/namespaces/a/services/b", Target(SERVICES, "a", "b", legacy_watch=True)),
        ("/api/v1/endpointslices", None),
        ("/apis/discovery.k8s.io/v1/services", None),
        ("/api/v1/servicez", None),
        ("/api/v1/services/b", None),
        ("/api/v1/namespaces/a/endpoints/b/status", None),
        ("/api/v2/services", None),
        ("/", None),
    ],
)
def test_path_leads_to_its_target(path: str, target: Target | None) -> None:
    assert parse_path(path) == target


def test_fields_are_put_in_wire_order_and_unknown_ones_dropped() -> None:
    given = {
        "status": {},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 1, "name": "", "surprise": 1}], "typo": True},
        "metadata": {"labels": {"b": "2", "a": ""}, "name": "x"},
    }
    assert go_json(arrange("services", given)) == (
        b'{"metadata":{"name":"x","labels":{"a":"","b":"2"}},"spec":{"ports":[{"port":1}],"clusterIP":"10.0.0.1"}}'
    )


def test_false_conditions_and_empty_port_names_of_slices_are_kept() -> None:
    given = {"endpoints": [{"addresses": ["::1"], "conditions": {"ready": False}}], "ports": [{"port": 1, "name": ""}]}
    assert arrange("endpointslices", given) == {"metadata": {}, **given}


@pytest.mark.parametrize(
    "given", [{"spec": []}, {"spec": {"ports": {}}}, {"metadata": {"labels": {"a": 1}}}, {"spec": {"type": {}}}]
)
def test_wrong_json_types_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ShapeError, match="cannot unmarshal"):
        arrange("services", given)
