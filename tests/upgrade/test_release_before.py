"""The release before is in this repository's history, or tests say how to get it."""

from pathlib import Path

import pytest

from upgrade.release_before import COMMIT, extract_release_before


def test_its_code_is_extracted(tmp_path: Path) -> None:
    root = extract_release_before(tmp_path)

    assert len(COMMIT) == 40
    assert (root / "layers/kubesync/kubesync/__init__.py").is_file()
    assert (root / "local/kubesync_local/cli/main.py").is_file()


def test_clone_without_it_skips_and_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception) as skipped:
        extract_release_before(tmp_path, "0123456789abcdef" * 2 + "01234567")

    assert str(skipped.value) == (
        "this clone lacks commit 0123456789ab, the release before: run `git fetch --unshallow`"
    )
