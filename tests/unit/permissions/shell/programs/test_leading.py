"""Options between the words by which rules name a command."""

import os
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.decide_shell import decide_shell


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("docker push", "docker --context y push x"),
        ("docker push", "docker -H tcp://x --tls push x"),
        ("docker push", "docker --host=tcp://x push x"),
        ("docker push", "/usr/bin/docker -D push"),
        ("docker push", "sudo docker -D push"),
        ("docker push", "bash -c 'docker -D push'"),
        ("docker push", "x=push; docker -D $x"),
        ("docker compose down", "docker -D compose -f x.yml --compatibility down"),
        ("docker compose:*", "docker -D compose down"),
        ("kubectl delete", "kubectl -n web delete pod x"),
        ("kubectl delete", "kubectl --kubeconfig x --as=admin delete pod x"),
        ("make deploy", "make -C x V=1 deploy"),
        ("make deploy", "make test deploy"),
        ("mvn deploy", "mvn -q clean deploy"),
        ("./gradlew publish", "./gradlew clean publish"),
        ("./gradlew publish", "./gradlew publish"),
        ("gradlew publish", "./gradlew -q publish"),
        ("cargo publish", "cargo +nightly -Z x publish"),
        ("terraform apply", "terraform -chdir=x apply"),
        ("git stash drop", "git -C x stash drop"),
        ("gh pr merge", "gh pr --repo a/b merge"),
        ("python -m pip", "python -u -m pip install x"),
        ("python -m pip", "python -mpip install x"),
        ("python -m pip", "python -um pip install x"),
        ("@install", "pip --proxy x install y"),
        ("docker push", "docker image push x"),
        ("podman rm", "podman container rm x"),
        ("npm publish", "npm publ"),
        ("hg push", "hg pus"),
        ("gradle publish", "gradle publi"),
        ("git push", "git-push origin"),
        ("git push", "/usr/lib/git-core/git-push origin"),
        ("git push", "git send-pack x"),
        ("git push", "git subtree push x"),
        ("npm install", "npm i x"),
        ("npm install", "npm -s add x"),
        ("npm run deploy", "npm run-script deploy"),
        ("npm exec", "npm x thing"),
    ],
)
def test_a_rule_that_denies_finds_its_words_whatever_options_are_between(
    rule: str, command: str
) -> None:
    policy = msgspec.structs.replace(POLICY, allow_all_tools=True, deny=rules(f"shell({rule})"))
    assert decide_shell(command, policy).verdict == "deny"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("rm -rf", "rm -fr x"),
        ("rm -rf", "rm -r -f x"),
        ("rm -rf", "rm x --force --recursive"),
        ("rm -rf", "sudo rm -Rfv x"),
        ("git push --force", "git push origin main -f"),
        ("git push --force", "git -C . push -uf"),
        ("git push --force", "git push --forc"),
        ("git push --force", "git push --force-with-lease"),
        ("git commit --no-verify", "git commit -m x -n"),
        ("find -delete", "find . -name x -delete"),
        ("terraform apply -auto-approve", "terraform apply -input=false -auto-approve"),
        ("npm install --force", "npm i x -f"),
    ],
)
def test_a_rule_that_denies_options_denies_them_in_every_form(rule: str, command: str) -> None:
    policy = msgspec.structs.replace(
        POLICY, allow_all_tools=True, allow_destructive=True, deny=rules(f"shell({rule})")
    )
    assert decide_shell(command, policy).verdict == "deny"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("rm -rf", "rm -f x"),
        ("git push --force", "git push origin main"),
        ("git push --force", "git fetch -f"),
        ("git commit --no-verify", "git commit -m x"),
        ("find -delete", "find . -maxdepth 1 -type f -ls"),
        ("python3 -m pip", "python3 -m venv x"),
    ],
)
def test_a_rule_that_denies_options_leaves_others_alone(rule: str, command: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow_all_tools=True, deny=rules(f"shell({rule})"))
    assert decide_shell(command, policy).verdict == "allow"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("docker push", "docker pull push"),
        ("docker push", "docker -D pull push"),
        ("docker push", "docker --log-level=debug pull push"),
        ("git push", "git --no-pager log push"),
        ("npm publish", "npm -s run publish"),
        ("cargo publish", "cargo +nightly test publish"),
        ("python -m pip", "python -m pytest"),
        ("make deploy", "make deploys"),
        ("make deploy", "ninja deploy"),
        ("docker push", "docker image pull push"),
        ("npm publish", "npm p"),
        ("npm run deploy", "npm run-script test"),
        ("git push", "git subtree add x"),
        ("gradle publish", "gradle pub-docs"),
    ],
)
def test_a_rule_that_denies_leaves_other_commands_alone(rule: str, command: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow_all_tools=True, deny=rules(f"shell({rule})"))
    assert decide_shell(command, policy).verdict == "allow"


NARROW = rules(
    *("shell(make test)", "shell(docker compose up)", "shell(docker ps)", "shell(cargo test)"),
    *("shell(go test)", "shell(python -m pytest)", "shell(mvn test)", "shell(uv run pytest)"),
)


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("make -C sub test", "allow"),
        ("make -j 4 -C ./sub -f x.mk test", "allow"),
        ("make test -j4 -C sub", "allow"),
        ("make test -- -C /etc", "allow"),
        ("make -C", "ask"),
        ("make -C /etc test", "ask"),
        ("make test -C /etc", "ask"),
        ("make test -kf -", "ask"),
        ("make -C away test", "ask"),
        ("docker compose -f dev.yml --env-file=.env up", "allow"),
        ("docker compose up -d", "allow"),
        ("docker compose -f - up", "ask"),
        ("docker compose -f ../x.yml up", "ask"),
        ("docker compose -f oci://evil.example/x up", "ask"),
        ("docker compose -f git@evil.example:x up", "ask"),
        ("docker compose -f github.com/evil/x up", "ask"),
        ("docker compose --env-file /etc/x up", "ask"),
        ("docker -D ps", "allow"),
        ("docker --context prod ps", "ask"),
        ("cargo +nightly test", "allow"),
        ("cargo +1.80.1 test", "allow"),
        ("cargo +/tmp/evil test", "ask"),
        ("go -C sub test", "allow"),
        ("go -C ../sub test", "ask"),
        ("python -u -Wignore -m pytest", "allow"),
        ("python -X pycache_prefix=x -m pytest", "ask"),
        ("python -W ignore::evil.X -m pytest", "ask"),
        ("mvn -fae test", "allow"),
        ("mvn test -fae", "allow"),
        ("mvn test -f ../x", "ask"),
        ("mvn test -f $x", "ask"),
        ("uv --project=sub run pytest", "allow"),
        ("uv --project=.. run pytest", "ask"),
    ],
)
def test_a_rule_of_several_words_means_no_files_that_are_elsewhere(
    tmp_path: Path, command: str, verdict: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "away").symlink_to(tmp_path)
    place = os.path.realpath(work)
    policy = msgspec.structs.replace(POLICY, cwd=place, roots=(place,), allow=NARROW)
    assert decide_shell(command, policy).verdict == verdict


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("make test lint", "allow"),
        ("make -j4 test V=1 lint -k", "allow"),
        ("make test deploy", "ask"),
        ("make test -- deploy", "ask"),
        ("mvn -q clean test -DskipIT -pl core", "allow"),
        ("mvn clean deploy", "ask"),
        ("mvn clean -X deploy", "ask"),
        ("mvn clean --unknown deploy", "ask"),
        ("./gradlew build --tests a.B -x lint", "allow"),
        ("./gradlew build publish", "ask"),
    ],
)
def test_every_target_of_a_build_needs_its_rule(command: str, verdict: str) -> None:
    given = rules("shell(make test)", "shell(make lint)", "shell(@code)")
    groups = msgspec.structs.replace(POLICY, allow=given[:2] if command[:4] == "make" else given)
    assert decide_shell(command, groups).verdict == verdict
