"""The folder in which the embedded model caches its processed instructions."""

from pathlib import Path

from trimtab.providers.embedded.provider import make_cache


def test_a_folder_is_made_for_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "slots"
    assert make_cache(str(folder)) == str(folder)
    assert folder.is_dir()


def test_without_a_folder_that_can_be_made_nothing_is_cached(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("not a folder")
    assert make_cache(str(tmp_path / "models" / "slots")) == ""
    assert make_cache("") == ""
