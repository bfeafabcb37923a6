"""How many listeners of a cluster one text is about."""

import pytest

from kubesync_local.page.views import how_many


@pytest.mark.parametrize(
    ("count", "of", "said"), [(1, 1, ""), (1, 2, ""), (2, 2, "both "), (1, 3, ""), (2, 3, "2 "), (3, 3, "all ")]
)
def test_text_of_several_listeners_is_said_once(count: int, of: int, said: str) -> None:
    assert how_many(count, of) == said
