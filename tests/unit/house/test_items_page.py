"""The runbook's table of items is made from what ``make chaos`` plays."""

from chaos.faults.items_ends import ENDS
from chaos.faults.items_page import MEANWHILE, PAGE, page_with, table


def test_i10_runbook_has_every_kind_of_item_that_is_deleted_or_restored() -> None:
    page = PAGE.read_text()
    assert page_with(page, table()) == page, "make causes"
    assert sorted(kind for kinds in MEANWHILE for kind in kinds) == sorted(ENDS)
