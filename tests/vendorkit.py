"""Repositories as other agents document them, and what `trimtab customizations` says of each field.

`tests/fixtures/vendors/NAME.txt` holds the files of one vendor, `NAME.tsv` what is expected of
every field in them. `python tests/vendorkit.py` writes the tables anew, to be read before a commit.
"""

import asyncio
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from clikit import Cli
from customizekit import write

FOLDER = Path(__file__).parent / "fixtures" / "vendors"
VENDORS = ("copilot", "claude", "codex", "gemini", "cursor")
DEPTH = 6
CONTAINERS = re.compile(
    r"^(?:projects\.[^.]*\.)?(?:mcpServers|servers|mcp_servers)\.[^.]+\.|^hooks\.\w+\.(?:hooks\.)?"
)
"""Where entries lie in a file that has several of them."""

WAYS = re.compile(r"(projects|mcpServers|servers|mcp_servers|hooks|version)(\.[^.]+)*")

Row = tuple[str, str, str]
"""A file, a field of it, and what became of it."""


def files_of(vendor: str) -> dict[str, str]:
    parts = re.split(r"(?m)^-- (.+) --\n", (FOLDER / f"{vendor}.txt").read_text())[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def unpack(vendor: str, folder: Path) -> Cli:
    """The files of a vendor, in a home directory and a repository that is trusted."""
    cli = Cli(folder)
    cli.home, cli.cwd = folder / "home" / ".copilot", folder / "repo"
    (cli.cwd / ".git").mkdir(parents=True)
    for name, text in files_of(vendor).items():
        write(folder / name, text.replace("@REPO@", str(cli.cwd)))
    cli.env |= {"HOME": str(folder / "home"), "COPILOT_ALLOW_ALL": "true"}
    cli.env["COPILOT_HOME"] = str(cli.home)
    return cli


async def look(vendor: str, folder: Path) -> list[dict[str, Any]]:
    outcome = await unpack(vendor, folder).run("customizations", "--json")
    assert outcome.code == 0, outcome.notes
    shown = json.loads(outcome.text)
    assert not [one for one in shown["problems"] if one["severity"] == "problem"]
    return [one for one in shown["customizations"] if one["source"] != "builtin"]


def fields_in(name: str, text: str) -> Iterator[str]:
    """Every field of a file, found without the program that is tested."""
    if name.endswith(".json"):
        yield from names(json.loads(text), DEPTH)
    elif name.endswith(".toml"):
        yield from names(tomllib.loads(text), DEPTH)
    elif text.startswith("---\n"):
        yield from names(yaml.safe_load(text.split("---\n")[1]), 1)


def names(value: Any, depth: int) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and depth:
            for name, inner in item.items():
                yield str(name)
                yield from (f"{name}.{below}" for below in names(inner, depth - 1))


def judge(vendor: str, entries: list[dict[str, Any]], folder: Path) -> Iterator[Row]:
    """What is said about every field and every file; an empty word if nothing is."""
    for name, text in files_of(vendor).items():
        mine = [one for one in entries if one["file"] == str(folder / name)]
        state = "not shown"
        if mine:
            used = any(one["enabled"] and not one["overriddenBy"] for one in mine)
            state = "used" if used else f"not used: {mine[0]['why']}"
        yield name, "", state
        said = {field: word for one in mine for field, word in one["fields"].items()}
        problems = [problem for one in mine for problem in one["problems"] if "field" in problem]
        said = {**{one["field"]: one["message"] for one in problems}, **said}
        settings = {one["name"] for one in mine if one["kind"] == "setting"}
        for field in dict.fromkeys(fields_in(name, text)):
            short = CONTAINERS.sub("", field)
            if short in said or field in said:
                yield name, field, said.get(field) or said[short]
            elif not covers(field, {**said, **dict.fromkeys(settings, "")}):
                yield name, field, ""


def covers(field: str, said: dict[str, str]) -> bool:
    """Whether what is inside an object goes by what is said about the object, or is the way to
    entries of which everything is said.
    """
    short = CONTAINERS.sub("", field)
    above = [one.rsplit(".", n)[0] for one in (field, short) for n in range(1, DEPTH)]
    is_way = WAYS.fullmatch(field) is not None and short in (field, "hooks")
    return is_way or any(one in said for one in above)


def table(vendor: str) -> list[Row]:
    lines = (FOLDER / f"{vendor}.tsv").read_text().splitlines()
    return [(name, field, word) for name, field, word in (line.split("\t") for line in lines)]


def main() -> None:
    for vendor in sys.argv[1:] or VENDORS:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "x"
            rows = judge(vendor, asyncio.run(look(vendor, folder)), folder)
            text = "".join("\t".join(row) + "\n" for row in rows)
        (FOLDER / f"{vendor}.tsv").write_text(text)


if __name__ == "__main__":
    main()
