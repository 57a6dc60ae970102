"""Questions about hosts that sandboxed commands want to reach."""

from collections.abc import Sequence

from permissionkit import POLICY
from trimtab.contracts.events.envelope import EventData, JsonObject
from trimtab.contracts.permission import Answer
from trimtab.permissions.approvals import approve_bundle, to_rules
from trimtab.permissions.host_questions import HOSTS, HostQuestions
from trimtab.permissions.processor import Permissions

KNOWN = ("https://git.test", "https://packages.test", "https://ssh.test:22")


class Keeper:
    """Keeps answers for a project that is fetched and built from known hosts."""

    location = "/work"

    def __init__(self, *hosts: str) -> None:
        self.hosts = hosts
        self.kept: list[JsonObject] = []

    def keep(self, approval: JsonObject, *, always: bool) -> None:
        self.kept.append(approval)

    def find_checks(self) -> None:
        return None

    def find_hosts(self) -> Sequence[str]:
        return self.hosts


async def reach(keeper: Keeper, *hosts: str, port: int = 443) -> list[JsonObject]:
    """Return the questions about hosts; all that belong together are allowed if that is offered."""
    asked: list[JsonObject] = []
    events: list[EventData] = []

    async def answer(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        return approve_bundle(request) if "bundle" in request else Answer(kind="approve-once")

    questions = HostQuestions(Permissions(POLICY, answer, keeper), events.append)
    for number, host in enumerate(hosts):
        assert await questions.ask(host, port, f"call-{number}")
    return asked


async def test_one_answer_allows_all_hosts_that_a_project_is_built_from() -> None:
    keeper = Keeper(*KNOWN)
    (asked,) = await reach(keeper, "packages.test", "git.test", "git.test")
    assert asked["bundle"]["title"] == HOSTS
    (kept,) = keeper.kept
    assert [rule.argument for rule in to_rules(kept, "location")] == list(KNOWN)


async def test_other_hosts_and_ports_are_asked_about_one_by_one() -> None:
    keeper = Keeper(*KNOWN)
    asked = await reach(keeper, "git.test", "evil.test", "git.test.evil.test")
    assert ["bundle" in request for request in asked] == [True, False, False]
    asked = await reach(Keeper(*KNOWN), "git.test", port=8443)
    assert ["bundle" in request for request in asked] == [False]


async def test_a_single_host_is_offered_as_any_other() -> None:
    (asked,) = await reach(Keeper("https://git.test"), "git.test")
    assert "bundle" not in asked
