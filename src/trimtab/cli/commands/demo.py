"""`trimtab demo`: the agent at work on a small bundled project, with whatever model there is."""

import os
import shutil
import sys
import tempfile

from trimtab.contracts.provider import Provider

HELP = "run the agent once on a small example project"

PROMPT = "check.py fails. Find out why and fix prices.py, then show that the check passes."

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "demo")


def run(argv: list[str]) -> int:
    from trimtab.cli.start import start

    project = os.path.join(tempfile.mkdtemp(prefix="trimtab-demo-"), "prices")
    shutil.copytree(os.path.join(_FOLDER, "project"), project)
    provider = scripted_model()
    say(f"Project: {project}")
    say(f"Prompt:  {PROMPT}")
    say("")
    flags = ["-C", project, "-p", PROMPT, "--allow-all-tools", *argv]
    return start(flags, provider)


def scripted_model() -> Provider | None:
    """The scripted model where no real one is configured; says plainly which of them it is."""
    from trimtab.providers.endpoints import from_environment

    choice = from_environment(os.environ)
    if choice is not None:
        say(f"Model:   {choice.model or 'the default model'} at {choice.base_url}")
        return None
    from trimtab.testing import Script, ScriptedProvider

    say("Model:   none is configured, so a SCRIPTED model answers: its words are fixed in advance,")
    say("         but the tools, the files and the session are real. Set OPENAI_API_KEY,")
    say("         ANTHROPIC_API_KEY or COPILOT_PROVIDER_BASE_URL to see a real one work.")
    return ScriptedProvider(Script.load(os.path.join(_FOLDER, "script.yaml")))


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
