"""What is noted of the commands of a script."""

from pathlib import Path

import pytest

from trimtab.permissions.shell.grammar.syntax import Effort, Unparsable
from trimtab.permissions.shell.verdict.analyse import analyse
from trimtab.permissions.shell.verdict.analysis import Analysis
from trimtab.permissions.shell.verdict.judge import DEEPEST, Judge

NAMED = "the name of the file '-o' would be an option"


@pytest.mark.parametrize(
    ("command", "hazards"),
    [
        ("foo *", [NAMED]),
        ("foo -?", [NAMED]),
        ("foo [-a]*", [NAMED]),
        ("foo b*", []),
        ("foo b* *", [NAMED]),
        ("foo -- *", []),
        ("foo * -- b", [NAMED]),
        ("foo '*'", []),
        ("echo *", []),
        ("foo ./*", []),
    ],
)
def test_a_file_named_like_an_option_counts_where_a_pattern_names_it(
    command: str, hazards: list[str], tmp_path: Path
) -> None:
    for name in ("-o", "b"):
        (tmp_path / name).touch()
    assert analyse(command, str(tmp_path)).hazards == hazards


def test_scripts_in_scripts_are_read_up_to_a_depth() -> None:
    deepest = analyse("eval " * (DEEPEST - 1) + "ls", "/srv")
    assert deepest.dynamic == []
    assert deepest.commands[-1].base == "ls"
    deeper = analyse("eval " * DEEPEST + "ls", "/srv")
    assert deeper.dynamic == ["scripts are nested too deeply"]
    assert deeper.commands[-1].base == "eval"


def test_what_was_found_before_the_effort_is_spent_stays() -> None:
    analysis = Analysis()
    with pytest.raises(Unparsable, match="it takes too long to read"):
        Judge(analysis, "/srv", "", Effort(9)).read("ls; id; pwd")
    assert [found.base for found in analysis.commands] == ["ls"]


def test_without_a_home_folder_its_variable_is_not_known() -> None:
    assert analyse("cat $HOME/a ~/b", "/srv").commands[0].words == ("cat",)
    known = analyse("cat $HOME/a ~/b", "/srv", "/home/someone").commands[0].words
    assert known == ("cat", "/home/someone/a", "/home/someone/b")


def test_what_is_deleted_without_a_name_is_not_unsure() -> None:
    assert not analyse("rm ''", "/srv").unsure
    assert analyse("rm $x", "/srv").unsure
    assert analyse("rm a$x", "/srv").unsure
    assert not analyse("rm 'a'\"$x\"", "/srv").unsure


@pytest.mark.parametrize(
    ("command", "scripts", "touched"),
    [
        ("python3 .claude/x.py .git/config", [".claude/x.py"], [".git/config"]),
        ("bash -x .git/hooks/pre-commit a", [".git/hooks/pre-commit"], ["a"]),
        ("source .venv/bin/activate", [".venv/bin/activate"], []),
        ("cp a .claude/x.js; node .claude/x.js", [".claude/x.js"], ["a", ".claude/x.js"]),
        ("python3 -m frob .git/config", [], ["frob", ".git/config"]),
        ("node $x .git/config", [], [".git/config"]),
    ],
)
def test_a_script_is_run_and_not_changed(
    command: str, scripts: list[str], touched: list[str]
) -> None:
    analysis = analyse(command, "/srv/project", "/home/me")
    assert analysis.scripts == [f"/srv/project/{name}" for name in scripts]
    assert analysis.touched == [f"/srv/project/{name}" for name in touched]
    assert analysis.given == [*analysis.touched, *analysis.scripts]


@pytest.mark.parametrize(
    ("command", "certain"),
    [
        ("f() { local a=$1 b=$(cat c); echo $a; }; f x", True),
        ("export A=$(cat c); ls", True),
        ("declare $x; ls", False),
        ("export A=1 $x; ls", False),
        ('export "$x"=1; ls', False),
        ("bash -c 'export A=$(cat c); ls'", False),
    ],
)
def test_what_a_declaration_assigns_is_not_split_into_words(command: str, certain: bool) -> None:
    analysis = analyse(command, "/srv/project", "/home/me")
    assert (analysis.read_only and not analysis.doubts) is certain
