"""Commands that a rule for writing covers."""

import sys
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY
from trimtab.contracts.permission import Policy
from trimtab.permissions.file_commands import MAX_ENTRIES, changes_named_files
from trimtab.permissions.shell.verdict.analyse import analyse


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.txt").write_text("x")
    (tmp_path / "f").write_text("f")
    (tmp_path / "d").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/deep").mkdir()
    (tmp_path / "linked/deep/l").symlink_to("/etc")
    (tmp_path / "l").symlink_to("f")
    return msgspec.structs.replace(POLICY, cwd=str(tmp_path), roots=(str(tmp_path),))


def covered(command: str, policy: Policy) -> bool:
    analysis = analyse(command, policy.cwd, policy.home)
    names = [found.identifier for found in analysis.commands if not found.read_only]
    return changes_named_files(names, analysis, policy)


@pytest.mark.parametrize(
    ("command", "plain"),
    [
        ("mkdir -p new/folder", True),
        ("touch new", True),
        ("rm f", True),
        ("rmdir d", True),
        ("cp f g && mv g h", True),
        ("mkdir b && touch b/x", True),
        ("chmod 644 f", True),
        ("chmod 0755 f", True),
        ("chmod u+x,g-w f", True),
        ("chmod +x f", True),
        ("chmod -x f", True),
        ("chmod 4755 f", False),
        ("chmod u+s f", False),
        ("chmod -R 755 a", False),
        ("chmod 644 -R a", False),
        ("chmod", False),
        ("touch $x", False),
        ('d=new; mkdir -p "$d/x" && touch $d/y', True),
        ("d=new; e=$d/x; mkdir -p $e", True),
        ("d=/etc; touch $d/x", False),
        ('export d=new; mkdir -p "$d"', True),
        ('export d=new e=x; mkdir -p "$d/$e"', True),
        ('export d="$PWD/new" && touch "$d"', True),
        ("export d=a; export d=/etc/x; touch $d", False),
        ("touch x=~/y", False),
        ("UID=1; d=new\ntouch $d/x", False),
        ("UID=1; d=new; touch $d/x", True),
        (": $((1/0)); d=new\ntouch $d/x", False),
        (": $((1/0))\nd=new; touch $d/x", True),
        (": ${HOME:1/0} ||\n:; d=new\ntouch $d/x", False),
        ("f() { : $((1/0)); }\nf; d=new\ntouch $d/x", False),
        ("f() { : $((1/0)); }\nd=new\ntouch $d/x", True),
        ("readonly d=new\ntouch $d/x", False),
        ("touch $'caf\\u00e9'", False),
        ("touch $'a\\x20b'", True),
        ("touch 'café'", True),
        ("{read,d} <<< l; d=new; touch $d", False),
        ("cd $d && touch new; d=a", False),
        ("d=a && true & touch $d", False),
        ("set -euo pipefail; d=a; touch $d/x", True),
        ("set -e; d=a; cd $d && touch x", True),
        ("d=a; set x; touch $d", False),
        ("export d=a || true & touch $d", False),
        ("true & d=a && touch $d", True),
        ("command cd /etc && touch new", False),
        ("cd a; bash -c 'touch $PWD/new'", False),
        ("cd a && touch x.txt", True),
        ("cd a | touch ../f", False),
        ("true | cd a && touch ../f", False),
        ("! cd nosuch && touch ../f", False),
        ("true || cd a && touch ../f", False),
        ("cd a && touch ../f", True),
        ("env -C .. bash -c 'touch f'", False),
        ("env -C a bash -c 'touch new'", True),
        ("find a -execdir bash -c 'touch new' ';'", False),
        ("f() { touch new; }; cd /usr/include; f", False),
        ("for i in 1 2; do touch new; cd /usr/include; done", False),
        ("for i in 1 2; do touch new; cd a; done", True),
        ("trap 'touch new' EXIT; cd /usr/include", False),
        ("export -n d=a; touch $d", False),
        ("export d=a $x; touch $d", False),
        ('export d=a "$x"; touch $d', False),
        ("export d+=a; touch $d", False),
        ("export d; touch $d", False),
        ("export d=$x; touch $d", False),
        ("export d=(a b); touch $d", False),
        ("export d=~/a; touch $d", False),
        ("true && export d=a; touch $d", False),
        ("f() { export d=/etc/x; }; export d=a; f; touch $d", False),
        ("export d=a; (export d=/etc/x; touch $d)", False),
        ("export d=a | cat; touch $d", False),
        ("d=a; export d; touch $d", False),
        ("d=a; touch $d; read x", True),
        ("d=a; touch $d; unset d", True),
        ("d=a; touch $d; read d", False),
        ("d=a; while :; do touch $d; read x; done", False),
        ("d=a; until touch $d; do read x; done", False),
        ("d=a; for x in 1 2; do touch $d; read x; done", False),
        ("d=a; for ((i = 0; i < 2; i++)); do touch $d; read x; done", False),
        ("d=a; select x in 1 2; do touch $d; read x; done", False),
        ("d=a; f() { touch $d; read x; f; }; f", False),
        ("f() { read x; }; d=a; f; touch $d", False),
        ("trap 'd=/etc/x' DEBUG; d=a; touch $d", False),
        ("d=$1; mkdir -p $d", False),
        ("d='*'; rm $d", False),
        ("d=../outside; touch $d", False),
        ("[ -d a ] && d=a; touch $d/y", False),
        ("touch $d; d=a", False),
        ("d=a; read d; touch $d", False),
        ("d=a | touch $d", False),
        ("touch $PWD/new $(pwd)/new", True),
        ("cd a; touch $PWD/new", False),
        ("cd a; touch $(pwd)/new", False),
        ("pwd() { echo /etc; }; touch $(pwd)/x", False),
        ("touch $(mktemp)", False),
        ('for x in new other; do touch "$x.txt"; done', True),
        ("for x in f g; do cp $x d/; done", True),
        ("for x in f l; do cp $x d/; done", False),
        ("for x in f /etc/x; do touch $x; done", False),
        ("for x in *; do touch $x; done", False),
        ("for x in f '*'; do touch $x; done", False),
        ("for x; do touch $x; done", False),
        ("for x in f; do touch $x; done; touch $x", False),
        ("touch $x; for x in f; do :; done", False),
        ("for x in f; do x=/etc/x; touch $x; done", False),
        ("for x in f; do read x; touch $x; done", False),
        ("for x in f; do (x=/etc/x; touch $x); done", False),
        ("IFS=e; for x in fed; do touch $x; done", False),
        ("g() { for x in f; do touch $1/$x; done; }; g /etc", False),
        ("select x in f g; do touch $x; done", False),
        ("touch *", False),
        ("touch ../outside", False),
        ("touch /etc/x", False),
        ("touch .git/hooks/pre-commit", False),
        ("ln -s f g", False),
        ("touch a && make", False),
        ("mkdir", False),
        ("cp l g", False),
        ("mv linked elsewhere", False),
        ("cp -r a b", True),
        ("cp -R linked/. b", False),
        ("cp -R ./linked/deep/../deep b", False),
        ("cp -R linked/deep/.. b", False),
        ("cd linked && cp -R . ../b", False),
        ("cp -t d l", False),
        ("cp -t d f", True),
        ("rm l", True),
        ("sed -i '' 's/a/b/' f", True),
        ("sed -i.bak -E 's/a/b/' f", True),
        ("sed -i.bak -n -e '1d' -e 's/a/b/g' f", True),
        ("sed --in-place=.old 's/a/b/' f", True),
        ("sed -i '' 's/a/b/w x' f", False),
        ("sed -i.bak 's/a/b/e' f", False),
        ("sed -i.bak -e 's/a/b/' -e 'w x' f", False),
        ("sed -i.bak -f script f", False),
        ("sed -i/etc/x 's/a/b/' f", False),
        ("sed -i'../*' 's/a/b/' f", False),
        ("sed -i.bak 's/a/b/' ../f", False),
        ("sed -i.bak 's/a/b/' .git/config", False),
        ("sed -i.bak --follow-symlinks 's/a/b/' f", False),
        ('sed -i.bak "s/a/$x/" f', False),
        ("echo hi | tee f", True),
        ("tee -a f", True),
        ("tee --output-error=warn f", False),
        ("tee ../f", False),
    ],
)
def test_only_literal_changes_of_files_inside_are_covered(
    policy: Policy, command: str, plain: bool
) -> None:
    assert covered(command, policy) is plain


@pytest.mark.skipif(sys.platform == "darwin", reason="its sed reads -i otherwise")
def test_a_bare_i_of_sed_is_no_ending_of_backups_here(policy: Policy) -> None:
    assert covered("sed -i 's/a/b/' f", policy)
    assert not covered("sed -i 'w x' f", policy)


def test_a_folder_too_large_to_be_searched_may_hold_a_link(policy: Policy) -> None:
    folder = Path(policy.cwd) / "many"
    folder.mkdir()
    for number in range(MAX_ENTRIES):
        (folder / str(number)).touch()
    assert covered("mv many elsewhere", policy)
    (folder / "one more").touch()
    assert not covered("mv many elsewhere", policy)


def test_only_what_is_copied_or_moved_is_searched_for_links(policy: Policy) -> None:
    place = policy.cwd
    assert covered(f"cp {place}/f {place}/l", policy)
    assert not covered(f"cp {place}/l {place}/f", policy)
    assert covered("cp f l; rm l", policy)
