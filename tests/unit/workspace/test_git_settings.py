"""Settings in the text of a git configuration file."""

from trimtab.workspace.git_settings import read_git_settings


def test_settings_are_read_with_their_sections_in_any_spelling() -> None:
    text = (
        '\ufeff[Core]\n\tEditor = vi\n[diff "a.b"] textconv=x = y\n[alias]\n\tst\n[diff.old]\n c=1'
    )
    settings = [setting for setting in read_git_settings(text) if setting[1]]
    assert settings == [
        ("core", "editor", "vi"),
        ("diff", "textconv", "x = y"),
        ("alias", "st", ""),
        ("diff", "c", "1"),
    ]
