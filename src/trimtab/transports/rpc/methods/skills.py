"""Lists, enables, disables and reloads the skills of a session."""

import msgspec

from trimtab.config.edit import change_field, read_object
from trimtab.contracts.events.codec import decode, peek
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.system import SkillInvoked
from trimtab.customize.describe import describe_skill
from trimtab.host.hosted import HostedSession
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Name(msgspec.Struct):
    name: str


class DisabledSkills(msgspec.Struct, rename="camel"):
    disabled_skills: list[str]


@methods.on("session.skills.list")
async def list_skills(call: Call, params: Nothing) -> JsonObject:
    await call.session.live.controls.fetch_client_skills()
    return {"skills": find_skills(call.session)}


@methods.on("session.skills.enable", Name)
async def enable(call: Call, params: Name) -> None:
    """Enable a skill in this session."""
    call.session.live.controls.switch_skill(params.name, enabled=True)


@methods.on("session.skills.disable", Name)
async def disable(call: Call, params: Name) -> None:
    call.session.live.controls.switch_skill(params.name, enabled=False)


@methods.on("session.skills.reload")
async def reload_skills(call: Call, params: Nothing) -> JsonObject:
    controls = call.session.live.controls
    await controls.fetch_client_skills()
    controls.reload()
    custom = controls.setup.customizations
    problems = custom.skills.problems if custom else ()
    return {
        "warnings": [problem.sentence for problem in problems if problem.note],
        "errors": [problem.sentence for problem in problems if not problem.note],
    }


@methods.on("session.skills.ensureLoaded")
async def ensure_loaded(call: Call, params: Nothing) -> JsonObject:
    await list_skills(call, params)
    return {}


@methods.on("session.skills.getInvoked")
async def get_invoked(call: Call, params: Nothing) -> JsonObject:
    """Return the skills that were used, in order."""
    used: list[JsonObject] = []
    for line in call.session.live.read_events():
        if peek(line).type != "skill.invoked":
            continue
        data = decode(bytes(line)).data
        if isinstance(data, SkillInvoked):
            used.append(
                {
                    "name": data.name,
                    "path": data.path,
                    "content": data.content,
                    "invokedAtTurn": data.invoked_at_turn or 0,
                    "allowedTools": data.allowed_tools,
                }
            )
    return {
        "skills": [
            {name: value for name, value in skill.items() if value is not None} for skill in used
        ]
    }


@methods.on("skills.config.setDisabledSkills", DisabledSkills)
async def set_disabled(call: Call, params: DisabledSkills) -> None:
    """Disable skills in the person's settings, for future sessions."""
    change_field(call.server.runtime.home.settings, "disabledSkills", params.disabled_skills)


class SkillSwitch(msgspec.Struct):
    name: str
    disabled: bool


@methods.on("skills.config.setSkillDisabled", SkillSwitch)
async def switch_disabled(call: Call, params: SkillSwitch) -> None:
    """Disable or enable one skill in the person's settings, for future sessions."""
    settings = call.server.runtime.home.settings
    listed = read_object(settings).get("disabledSkills")
    names = [name for name in listed or () if isinstance(name, str) and name != params.name]
    names += [params.name] if params.disabled else []
    change_field(settings, "disabledSkills", names)


def find_skills(hosted: HostedSession) -> list[JsonObject]:
    """Return the skills of a session, from a client's directories and from discovery."""
    custom = hosted.live.controls.setup.customizations
    return [describe_skill(skill) for skill in custom.skills.skills.values()] if custom else []
