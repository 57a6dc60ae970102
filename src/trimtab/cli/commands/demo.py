"""`trimtab demo`: the agent at work on a small bundled project, with whatever model there is."""

import os
import shutil
import tempfile

from trimtab.cli.streams import say
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.provider import Provider

HELP = "run the agent once on a small example project"
USAGE = """\
Usage: trimtab demo [--scripted] [--keep] [FLAGS]
       --scripted   let a scripted model answer, whatever is configured
       --keep       keep the folder of the example project; it is removed otherwise
       FLAGS        those of a run, for example --output-format json"""

PROMPT = "check.py fails. Find out why and fix prices.py, then show that the check passes."

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "demo")
_OWN = ("--scripted", "--keep")


def run(argv: list[str]) -> int:
    from trimtab.cli.parse import parse
    from trimtab.cli.start import start

    folder = tempfile.mkdtemp(prefix="trimtab-demo-")
    try:
        project = os.path.join(folder, "prices")
        shutil.copytree(os.path.join(_FOLDER, "project"), project)
        flags = [flag for flag in argv if flag not in _OWN]
        arguments = ["-C", project, "-p", PROMPT, "--allow-all-tools", *flags]
        parse(arguments)  # a wrong flag is told before a model is fetched
        provider = scripted_model() if "--scripted" in argv or not real_model() else None
        say(f"Project: {project}")
        say(f"Prompt:  {PROMPT}\n")
        code = start(arguments, provider)
        show_changes(project)
        return code
    finally:
        if "--keep" not in argv:
            shutil.rmtree(folder, ignore_errors=True)


def show_changes(project: str) -> None:
    """Print what the agent changed: the folder is gone when the command ends."""
    import difflib

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


def real_model() -> bool:
    """Tell whether a real model can answer: a configured one, or the embedded one, fetched now."""
    from trimtab.providers.endpoints import from_environment

    choice = from_environment(os.environ)
    if choice is not None:
        say(f"Model:   {choice.model or 'the default model'} at {choice.base_url}")
        return True
    from importlib.util import find_spec

    if find_spec("xllamacpp") is None:
        return False
    from trimtab.cli.pull import run as pull

    try:
        pull(["local"])
    except (TrimtabError, OSError) as error:
        say(f"The embedded model cannot be had: {error}")
        return False
    return True


def scripted_model() -> Provider:
    """A model whose words are fixed; says plainly that it is one."""
    from trimtab.testing import Script, ScriptedProvider

    say("Model:   a SCRIPTED model answers: its words are fixed in advance, but the tools, the")
    say("         files and the session are real. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or")
    say("         COPILOT_PROVIDER_BASE_URL to see a real one work.")
    return ScriptedProvider(Script.load(os.path.join(_FOLDER, "script.yaml")))
