"""Reads the settings in the text of a git configuration file."""

from collections.abc import Iterator


def read_git_settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, name and value of each setting; section and name in lower case."""
    section = ""
    for line in map(str.strip, text.removeprefix("\ufeff").split("\n")):
        setting = line
        if line.startswith("["):
            head, _, setting = line[1:].partition("]")
            section = head.replace(".", " ").split(maxsplit=1)[0].lower() if head.strip() else ""
        name, _, value = setting.partition("=")
        yield section, name.strip().lower(), value.strip()
