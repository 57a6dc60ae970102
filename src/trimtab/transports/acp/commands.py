"""The slash commands and skills that a client is told of."""

from trimtab.commands.table import COMMANDS, list_commands
from trimtab.contracts.events.envelope import JsonObject
from trimtab.runtime.live import LiveSession


def describe_commands(live: LiveSession) -> list[JsonObject]:
    """Return the commands that work in this session: our own, then skills and prompt files."""
    commands = [
        describe(command.name, command.help, command.arguments)
        for command in list_commands(live)
        if command.handler is not None
    ]
    custom = live.controls.setup.customizations
    skills = custom.skills.active if custom is not None else ()
    return commands + [
        describe(skill.name, skill.description, skill.argument_hint)
        for skill in skills
        if skill.user_invocable and skill.name not in COMMANDS
    ]


def describe(name: str, description: str, hint: str) -> JsonObject:
    command: JsonObject = {"name": name, "description": description or name}
    return {**command, "input": {"hint": hint}} if hint else command
