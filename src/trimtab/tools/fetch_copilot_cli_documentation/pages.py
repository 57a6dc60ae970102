"""Finds and reads the pages of the documentation, in a package or in a checkout."""

import os

PARTS = ("getting-started", "guides", "concepts", "reference")
"""Folders with pages for users; `decisions` is for developers."""
START = "getting-started/README"


class Pages:
    """The pages below a folder; the name of a page is its path without `.md`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.names = [
            f"{part}/{name.removesuffix('.md')}"
            for part in PARTS
            for name in sorted(_names(os.path.join(folder, part)))
            if name.endswith(".md")
        ]

    @classmethod
    def find(cls) -> "Pages | None":
        package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
        for folder in (package, os.path.join(package, "..", "..")):
            pages = cls(os.path.join(folder, "docs"))
            if START in pages.names:
                return pages
        return None

    def match(self, wanted: str) -> str | None:
        """Return the page with this name, last part of a name, or link."""
        plain = wanted.strip().removesuffix(".md").strip("./").removeprefix("docs/").casefold()
        for name in self.names:
            if plain in (name.casefold(), name.rpartition("/")[2].casefold()):
                return name
        return None

    def read(self, name: str) -> str:
        path = os.path.join(self._folder, f"{name}.md")
        with open(path, encoding="utf-8") as file:
            return file.read().strip()

    def contents(self) -> str:
        """Return a list of all pages with their titles."""
        lines = []
        for name in self.names:
            title = self.read(name).partition("\n")[0].lstrip("# ")
            lines.append(f"- {name}: {title}")
        return "\n".join(lines)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
