"""The form that all items share: version, guard, slices."""

import random
import re
from pathlib import Path
from typing import Final

import kubesync
from kubesync.aws.dynamodb.store import CONTROL, STATE, UPSTREAMS, Absent, Delete, Equals, Key, Put, Update
from kubesync.aws.tables.items import place_of, put, sliced, unchanged, unpack_slices, update

PLACE: Final = Key(STATE, "main#0", "key#shop/web")
# Upstreams have a version of their own: proxies read it.
OTHERS: Final = {"aws/tables/items.py", "aws/tables/upstreams.py"}


def a_large_text() -> str:
    """Three slices, deflated."""
    return "".join(random.Random(1).choices("0123456789abcdef", k=500_000))


def test_item_has_the_version_of_this_release_unless_its_form_is_newer() -> None:
    assert put(PLACE, Absent(), body="x") == Put(PLACE, {"v": 1, "body": "x"}, (Absent(),))
    assert put(PLACE, v=3).item == {"v": 3}
    assert update(PLACE, {"count": 2}, last="x") == Update(PLACE, set={"v": 1, "last": "x"}, add={"count": 2})


def test_item_is_replaced_only_in_the_version_that_was_read() -> None:
    assert unchanged(0) == Absent()
    assert unchanged(7) == Equals("version", 7)


def test_place_of_an_item_is_its_key() -> None:
    assert place_of(CONTROL, {"pk": "clusters", "sk": "main", "v": 1}) == Key(CONTROL, "clusters", "main")
    assert place_of(UPSTREAMS, {"upstream": "main/shop/web/http", "slice": 2}) == Key(
        UPSTREAMS, "main/shop/web/http", 2
    )


def test_short_document_is_its_head_and_what_was_longer_is_removed() -> None:
    head, rest = sliced(PLACE, ["short"], 3, of=5)
    assert head == {"slices": 1, "body": '["short"]'}
    assert rest == [Delete(Key(STATE, "main#0", f"key#shop/web#{n}")) for n in ("001", "002")]


def test_long_document_takes_further_slices() -> None:
    head, rest = sliced(PLACE, a_large_text(), of=5)
    further = [write for write in rest if isinstance(write, Put)]
    assert head["slices"] == 3
    assert [(write.key.sort, write.item["of"], write.item["v"]) for write in further] == [
        ("key#shop/web#001", 5, 1),
        ("key#shop/web#002", 5, 1),
    ]
    assert unpack_slices([head["body"], *(write.item["body"] for write in further)]) == a_large_text()


def test_versions_of_items_are_written_in_one_place() -> None:
    package = Path(kubesync.__file__).parent
    named = {str(file.relative_to(package)) for file in package.rglob("*.py") if re.search(r'"v": ', file.read_text())}
    assert named <= OTHERS
