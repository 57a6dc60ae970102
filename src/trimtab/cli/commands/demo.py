"""`trimtab demo`: the agent at work on a small bundled project, with whatever model there is."""

import os
import shutil
import sys
import tempfile

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.provider import Provider

HELP = "run the agent once on a small example project"

PROMPT = "check.py fails. Find out why and fix prices.py, then show that the check passes."

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "demo")


def run(argv: list[str]) -> int:
    from trimtab.cli.start import start

    project = os.path.join(tempfile.mkdtemp(prefix="trimtab-demo-"), "prices")
    shutil.copytree(os.path.join(_FOLDER, "project"), project)
    scripted = "--scripted" in argv
    provider = scripted_model() if scripted or not real_model() else None
    say(f"Project: {project}")
    say(f"Prompt:  {PROMPT}")
    say("")
    flags = [flag for flag in argv if flag != "--scripted"]
    return start(["-C", project, "-p", PROMPT, "--allow-all-tools", *flags], provider)


def real_model() -> bool:
    """Whether a real model can answer: a configured one, or the embedded one, fetched if needed."""
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


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
