"""Texts that other shells read as bash does, and others."""

import pytest

from trimtab.permissions.shell.grammar.dialects import differs


@pytest.mark.parametrize(
    ("text", "shells"),
    [
        ("ls | head", "sh dash zsh fish"),
        ("ls 'a b' \"c\"; id && pwd", "sh dash zsh fish"),
        ("ls $x", "sh dash zsh"),
        ("ls *.py", "sh dash zsh"),
        ("ls {a,b}", "zsh"),
        ("echo '{a,b}'", "sh dash zsh"),
        ('echo "{a,b}" \\{a,b}', "sh dash zsh"),
        ('echo "$(ls {a,b})"', "zsh"),
        ("echo \"a `ls` '{b,c}'\"", ""),
        ("ls =a", "sh dash"),
        ("ls a=b", "sh dash zsh"),
        ("echo '=a'", "sh dash zsh"),
        ("ls *(.)", "sh dash"),
        ("repeat 3 ls", "sh dash fish"),
        ("time ls", ""),
        ("[[ a ]]", ""),
        ("ls <<< a", ""),
        ("echo $'a'", ""),
        ("a=1 ls", "sh dash zsh"),
        ("echo 'a[$(ls)]'", "sh dash"),
        ("ls \x01", ""),
        ("ls\ta", "sh dash zsh"),
    ],
)
def test_a_text_is_relied_on_in_the_shells_that_read_it_as_bash_does(
    text: str, shells: str
) -> None:
    agree = [name for name in ("sh", "dash", "zsh", "fish") if differs(text, name) is None]
    assert agree == shells.split()
    assert differs(text, "bash") is differs(text, "rbash") is differs(text, "Bash") is None


def test_the_reason_names_the_shell() -> None:
    assert differs("ls {a,b}", "SH") == "sh may read some of it in its own way"
