"""Turns the flags of a run into session options, and reads its prompt."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence

import msgspec

from trimtab.cli.parse import Values
from trimtab.config.feature_flags import TIERS
from trimtab.contracts.errors import UsageError
from trimtab.contracts.ids import is_uuid
from trimtab.contracts.options import (
    CustomizationOptions,
    GitHubServerOptions,
    Isolation,
    LimitOptions,
    PermissionOptions,
    SessionOptions,
    smallest_budget,
)
from trimtab.contracts.run import Mode, Prompt

_CONFLICTS = (
    ("prompt", "interactive"),
    ("resume", "continue"),
    ("resume", "session_id"),
    ("continue", "session_id"),
    ("plan", "autopilot"),
    ("sandbox", "no_sandbox"),
    ("experimental", "no_experimental"),
)


def build_options(values: Values) -> SessionOptions:
    """Return the options that the flags ask for. Raises `UsageError` for flags that conflict."""
    for first, second in _CONFLICTS:
        if first in values and second in values:
            raise UsageError(
                f"--{first} and --{second} cannot be used together; leave one out.".replace(
                    "_", "-"
                )
            )
    for name in ("workers", "check", "land"):
        if name in values and "fleet" not in values:
            raise UsageError(f"--{name} needs --fleet; add it or leave --{name} out.")
    cwd = find_cwd(values)
    session_id = values.get("session_id")
    if session_id is not None and not is_uuid(session_id):
        raise UsageError(
            f"--session-id needs a UUID, not {session_id!r}; leave it out for a new one."
        )
    return SessionOptions(
        cwd=cwd,
        model=values.get("model"),
        effort=values.get("effort"),
        reasoning_summary="enable_reasoning_summaries" in values,
        runtime=values.get("agent_runtime"),
        runtime_models=values.get("runtime_models"),
        offline="offline" in values or None,
        fallback=split(values.get("fallback_model", [])),
        stream=values.get("stream", "on") == "on",
        mode=find_mode(values),
        name=values.get("name"),
        session_id=session_id,
        auto_commit=False if "no_auto_commit" in values else None,
        available_tools=split(values["available_tools"]) if "available_tools" in values else None,
        excluded_tools=find_excluded(values),
        instructions="skip" if "no_custom_instructions" in values else "load",
        customize=find_customizations(values, cwd),
        permissions=find_permissions(values, cwd),
        trust_folder="trust_folder" in values,
        sandbox="sandbox" in values if {"sandbox", "no_sandbox"} & values.keys() else None,
        secrets=split(values.get("secret_env_vars", [])),
        limits=find_limits(values),
    )


FLAGS_OF_RUNS = (
    *("prompt", "interactive", "resume", "continue", "session_id", "name", "output_format"),
    *("attachment", "share", "usage_output_file", "fleet", "workers", "check", "land"),
)
"""Flags about one prompt or one session; the clients of a server choose those."""


def refuse_flags(values: Values, server: str, others: Sequence[str] = ()) -> None:
    """Raise `UsageError` if a flag makes no sense beside the flag of a server."""
    for name in (*FLAGS_OF_RUNS, *others):
        if name in values:
            flag = "a prompt" if name == "words" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{server} and {flag} cannot be used together; leave one out.")


def build_session_options(values: Values) -> SessionOptions:
    """Return the options of every session of a server; a client may choose another folder."""
    configs = values.get("additional_mcp_config", [])
    absolute = [f"@{os.path.abspath(text[1:])}" if text[:1] == "@" else text for text in configs]
    if absolute:
        values = {**values, "additional_mcp_config": absolute}
    options = build_options(values)
    if "worktree" not in values:
        return options
    name = None if values["worktree"] is True else values["worktree"]
    isolation = Isolation(name=name, changes=values.get("worktree_changes", "leave"))
    return msgspec.structs.replace(options, isolation=isolation)


def find_customizations(values: Values, cwd: str) -> CustomizationOptions:
    texts = tuple(values.get("additional_mcp_config", []))
    for text in texts:
        if text.startswith("@") and not os.path.isfile(os.path.join(cwd, text[1:])):
            raise UsageError(
                f"no such file: {text[1:]}; name an existing one with --additional-mcp-config."
            )
    named = map(os.path.expanduser, values.get("plugin_dir", []))
    plugins = tuple(os.path.join(cwd, name) for name in named)
    for folder in plugins:
        if not os.path.isdir(folder):
            raise UsageError(
                f"no such directory: {folder}; name an existing one with --plugin-dir."
            )
    given = [name for name in ("experimental", "no_experimental") if name in values]
    return CustomizationOptions(
        agent=values.get("agent"),
        mcp_config=texts,
        plugin_dirs=plugins,
        github=GitHubServerOptions(
            enabled="disable_builtin_mcps" not in values,
            tools=split(values.get("add_github_mcp_tool", [])),
            toolsets=split(values.get("add_github_mcp_toolset", [])),
            all_tools="enable_all_github_mcp_tools" in values,
        ),
        disabled_servers=split(values.get("disable_mcp_server", [])),
        experimental=given == ["experimental"] if given else None,
        features=find_features(values),
    )


def find_features(values: Values) -> dict[str, bool]:
    """Return the feature flags that `--feature` turns on or off. Raises `UsageError`."""
    found: dict[str, bool] = {}
    for text in split(values.get("feature", [])):
        name, _, state = text.partition("=")
        if state not in ("", "on", "off"):
            raise UsageError(f"--feature cannot read {text!r}; write {name}=on or {name}=off.")
        found[name.upper()] = state != "off"
    if found:
        for name in found.keys() - TIERS.keys():
            raise UsageError(
                f"There is no feature {name!r}; use one of {', '.join(TIERS)} (trimtab flags)."
            )
    return found


def find_cwd(values: Values) -> str:
    folder = os.path.abspath(str(values.get("cwd", os.curdir)))
    if not os.path.isdir(folder):
        raise UsageError(f"no such directory: {values['cwd']}; name an existing one with -C.")
    return folder


def find_mode_after_plan(values: Values) -> Mode | None:
    """Return autopilot if a plan is to be made first and carried out then, without a person."""
    wanted = "autopilot" in values or values.get("mode") == "autopilot"
    return "autopilot" if "plan" in values and wanted else None


def find_mode(values: Values) -> Mode:
    if find_mode_after_plan(values) is not None:
        return "plan"
    asked = {mode for mode in ("plan", "autopilot") if mode in values}
    mode: Mode = values.get("mode", "interactive")
    if "mode" in values and asked - {mode}:
        raise UsageError(
            f"--mode {mode} and --{asked.pop()} cannot be used together; leave one out."
        )
    if "plan" in asked:
        return "plan"
    return "autopilot" if "autopilot" in asked else mode


def find_permissions(values: Values, cwd: str) -> PermissionOptions:
    everything = "yolo" in values or os.environ.get("COPILOT_ALLOW_ALL") == "true"
    folders = []
    for name in values.get("add_dir", []):
        folder = os.path.join(cwd, os.path.expanduser(name))
        if not os.path.isdir(folder):
            raise UsageError(f"no such directory: {name}; name an existing one with --add-dir.")
        folders.append(folder)
    allowed, denied = find_rules(values, "allow"), find_rules(values, "deny")
    return PermissionOptions(
        allow=allowed,
        deny=denied,
        allow_destructive="allow_destructive" in values,
        allow_all_tools=everything or "allow_all_tools" in values,
        allow_all_paths=everything or "allow_all_paths" in values,
        allow_all_urls=everything or "allow_all_urls" in values,
        add_dirs=tuple(folders),
        temp_dir="disallow_temp_dir" not in values,
    )


def find_rules(values: Values, verb: str) -> tuple[str, ...]:
    """Return the rules that `--allow-…` or `--deny-…` flags hold. Raises for an invalid rule."""
    texts: list[str] = values.get(f"{verb}_tool", [])
    if not all(map(split_rules, texts)):
        raise UsageError(f"--{verb}-tool has no rule; write one, such as shell(git:*).")
    addresses: list[str] = values.get(f"{verb}_url", [])
    if not all(split([text]) for text in addresses):
        raise UsageError(f"--{verb}-url has no address; write one, such as example.com.")
    rules = [rule for text in texts for rule in split_rules(text)]
    rules += [f"url({pattern})" for pattern in split(addresses)]
    if rules:
        from trimtab.permissions.rules import parse_rules

        parse_rules(rules)
    return tuple(rules)


def split_rules(text: str) -> list[str]:
    """Split a text at the commas that are not in parentheses."""
    rules, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            rules.append("")
        else:
            rules[-1] += character
    return [rule.strip() for rule in rules if rule.strip()]


def find_limits(values: Values) -> LimitOptions:
    return LimitOptions(
        max_turns=values.get("max_turns"),
        max_tokens=values.get("max_tokens"),
        max_usd=smallest_budget(values.get("max_budget_usd"), values.get("max_ai_credits")),
        in_credits=values.get("max_ai_credits") is not None,
        deadline=values.get("deadline"),
        max_continues=values.get("max_autopilot_continues"),
        max_repeats=values.get("max_repeats"),
    )


def find_excluded(values: Values) -> tuple[str, ...]:
    """Return the tools that `--excluded-tools` names. Raises if one of the flags names none."""
    texts: list[str] = values.get("excluded_tools", [])
    if not all(split([text]) for text in texts):
        raise UsageError("--excluded-tools names no tool; write one, such as bash.")
    return split(texts)


def split(texts: list[str]) -> tuple[str, ...]:
    """Return the comma-separated names of all texts."""
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def attach_all(values: Values, cwd: str) -> Callable[[str], Prompt | str]:
    """Return a function that attaches files: those of flags to the first prompt, `@path` to any."""
    from_flags: list[str] = list(values.get("attachment", []))

    def prepare(text: str) -> Prompt | str:
        given = tuple(from_flags)
        from_flags.clear()
        if not given and "@" not in text:
            return text
        from trimtab.attachments.attach import attach

        return attach(text, given, cwd, values.get("add_dir", []))

    return prepare


async def read_prompt(values: Values) -> str:
    """Return the prompt of a run: the argument, or else all of standard input."""
    prompt: str | None = values.get("prompt")
    if prompt is None:
        prompt = await read_stdin()
    if not prompt.strip():
        raise UsageError("The prompt is empty; give it with -p TEXT or on stdin.")
    return prompt


async def read_stdin() -> str:
    """Read all of standard input without blocking the event loop."""
    if sys.stdin is None or os.isatty(0):
        raise UsageError("There is no prompt; give it with -p TEXT or on stdin.")
    loop = asyncio.get_running_loop()
    chunks: list[bytes] = []
    done = loop.create_future()

    def on_readable() -> None:
        try:
            chunk = os.read(0, 1 << 16)
        except OSError:
            chunk = b""
        chunks.append(chunk)
        if not chunk and not done.done():
            done.set_result(None)

    try:
        loop.add_reader(0, on_readable)
    except (PermissionError, OSError):  # a regular file is always readable
        while not done.done():
            on_readable()
    else:
        try:
            await done
        finally:
            loop.remove_reader(0)
    return b"".join(chunks).decode("utf-8", "replace")
