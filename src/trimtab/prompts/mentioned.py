"""Adds the text of files that a prompt mentions, for models too small to read them with tools."""

import os
import re

import msgspec

from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run

MAX_BYTES = 3000
MAX_FILES = 3


class MentionedFiles(Processor):
    """Appends the text of small files in the workspace that the prompt mentions."""

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        found = self._find(run, prompt.text)
        if not found:
            return prompt
        blocks = [f"{path}:\n```\n{text.rstrip()}\n```" for path, text in found.items()]
        text = "\n\n".join([prompt.transformed or prompt.text, *blocks])
        return msgspec.structs.replace(prompt, transformed=text)

    def _find(self, run: Run, text: str) -> dict[str, str]:
        workspace = run.tool_context("").workspace
        found: dict[str, str] = {}
        for word in dict.fromkeys(re.findall(r"[\w./-]+\.\w+", text)):
            path = workspace.resolve(word)
            inside = os.path.realpath(path).startswith(os.path.realpath(workspace.root) + os.sep)
            info = workspace.inspect(path)
            if not inside or info.kind != "file" or info.size > MAX_BYTES:
                continue
            if len(found) == MAX_FILES:
                break
            try:
                found[word] = workspace.load(path).data.decode()
            except (OSError, UnicodeDecodeError):
                continue
        return found
