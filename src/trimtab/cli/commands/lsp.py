"""`trimtab lsp`: lists the language servers for the files of this folder, and tries them."""

import os

from trimtab.cli.command_parser import Arguments, CommandParser, chosen_folder
from trimtab.cli.event_loop import run_async
from trimtab.cli.streams import print_json
from trimtab.contracts.language import LanguageProblem, LanguageServer
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.text import neutralise
from trimtab.customize.customizations import Customizations
from trimtab.customize.overview import gather
from trimtab.lsp.server import RunningServer
from trimtab.workspace.piped_program import PipedProgram


def add_arguments(parser: CommandParser) -> None:
    parser.epilog = (
        "Servers are configured in ~/.copilot/lsp-config.json, .github/lsp.json or by plugins, "
        "or found in .venv, node_modules and PATH. Folders that are not trusted get none."
    )
    parser.add_json()
    parser.add_folder()
    parser.add_argument("--check", action="store_true", help="start each server and greet it")


def run(args: Arguments) -> int:
    custom = gather(os.environ, SessionOptions(cwd=chosen_folder(args)))
    found = custom.language_servers
    checks = run_async(check_all(found.servers, custom)) if args.check else {}
    failed = any(problem for problem in checks.values())
    if args.json:
        print_json(
            {
                "trusted": custom.trusted,
                "servers": [describe(server, checks) for server in found.servers],
                "problems": found.problems,
            }
        )
        return int(failed)
    for server in found.servers:
        suffixes = " ".join(sorted(server.languages))
        state = f"  {checks[server.name] or 'works'}" if args.check else ""
        print(neutralise(f"{server.name}  {suffixes}  {server.source}{state}", "transcript"))
    for problem in found.problems:
        entry = f" ({problem.entry})" if problem.entry else ""
        print(neutralise(f"! {problem.file}{entry}: {problem.message}", "transcript"))
    if not found.servers:
        print(explain_none(custom))
    return int(failed)


def explain_none(custom: Customizations) -> str:
    if not custom.trusted:
        return "This folder is not trusted, so no language server is used; trust it first."
    if "LSP_TOOLS" not in custom.features:
        return "The feature LSP_TOOLS is off; see trimtab flags."
    return "No language server for the files here was found; install one or configure it."


def describe(server: LanguageServer, checks: dict[str, str]) -> dict[str, object]:
    shown: dict[str, object] = {
        "name": server.name,
        "command": list(server.argv),
        "languages": server.languages,
        "source": server.source,
    }
    if server.name in checks:
        shown["problem"] = checks[server.name]
    return shown


async def check_all(servers: tuple[LanguageServer, ...], custom: Customizations) -> dict[str, str]:
    """Return what is wrong with each server, by name; empty if it can be used."""
    return {server.name: await check(server, custom) for server in servers}


async def check(server: LanguageServer, custom: Customizations) -> str:
    try:
        running = RunningServer(server, custom.checkout.cwd, PipedProgram, dict(custom.env))
    except LanguageProblem as problem:
        return str(problem)
    try:
        await running.initialize()
    except LanguageProblem as problem:
        return str(problem)
    finally:
        await running.stop()
    return ""
