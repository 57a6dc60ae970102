"""`trimtab demo`: runs the agent on a small bundled project, with a real model if there is one."""

import difflib
import os
import shutil
import tempfile
from importlib.util import find_spec

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.parse import parse
from trimtab.cli.pull import pull_embedded
from trimtab.cli.start import start
from trimtab.cli.streams import say
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.provider import Provider
from trimtab.providers.endpoints import from_environment
from trimtab.testing import Script, ScriptedProvider

PROMPT = "check.py fails. Find out why and fix prices.py, then show that the check passes."

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "demo")


def add_arguments(parser: CommandParser) -> None:
    parser.usage = "trimtab demo [--scripted] [--keep] [FLAGS]"
    parser.epilog = "FLAGS are the flags of a run, for example --output-format json."
    parser.add_argument("--scripted", action="store_true", help="use a scripted model in any case")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the project")


def run(args: Arguments) -> int:
    folder = tempfile.mkdtemp(prefix="trimtab-demo-")
    try:
        project = os.path.join(folder, "prices")
        shutil.copytree(os.path.join(_FOLDER, "project"), project)
        arguments = ["-C", project, "-p", PROMPT, "--allow-all-tools", *args.unknown]
        parse(arguments)  # report a wrong flag before a model is fetched
        provider = scripted_model() if args.scripted or not has_real_model() else None
        say(f"Project: {project}")
        say(f"Prompt:  {PROMPT}\n")
        code = start(arguments, provider)
        show_changes(project)
        return code
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)


def show_changes(project: str) -> None:
    """Print the diff of the project: the folder is removed when the command ends."""
    for name in sorted(os.listdir(os.path.join(_FOLDER, "project"))):
        before, after = (
            read_lines(os.path.join(folder, name))
            for folder in (os.path.join(_FOLDER, "project"), project)
        )
        for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm=""):
            say(line)


def read_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def has_real_model() -> bool:
    """Return True if a model is configured, or the embedded one is or can be downloaded."""
    choice = from_environment(os.environ)
    if choice is not None:
        say(f"Model:   {choice.model or 'the default model'} at {choice.base_url}")
        return True
    if find_spec("xllamacpp") is None:
        return False
    try:
        pull_embedded(os.environ)
    except (TrimtabError, OSError) as error:
        say(f"The embedded model cannot be downloaded: {error}")
        return False
    return True


def scripted_model() -> Provider:
    """Return the model of the bundled script, and say that it is scripted."""
    say("Model:   a SCRIPTED model answers: its words are fixed in advance, but the tools, the")
    say("         files and the session are real. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or")
    say("         COPILOT_PROVIDER_BASE_URL to see a real one work.")
    return ScriptedProvider(Script.load(os.path.join(_FOLDER, "script.yaml")))
