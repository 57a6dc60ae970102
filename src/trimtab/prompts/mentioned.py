"""Files a prompt names are put into it, for models too small to go and look."""

import os
import re

import msgspec

from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run

LARGEST = 3000
MOST = 3


class MentionedFiles(Processor):
    """Appends the text of small files that the prompt names and the workspace has."""

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        found = self._find(run, prompt.text)
        if not found:
            return prompt
        blocks = [f"{path}:\n```\n{text.rstrip()}\n```" for path, text in found.items()]
        shown = "\n\n".join([prompt.transformed or prompt.text, *blocks])
        return msgspec.structs.replace(prompt, transformed=shown)

    def _find(self, run: Run, text: str) -> dict[str, str]:
        workspace = run.tool_context("").workspace
        found: dict[str, str] = {}
        for word in dict.fromkeys(re.findall(r"[\w./-]+\.\w+", text)):
            path = workspace.resolve(word)
            inside = os.path.realpath(path).startswith(os.path.realpath(workspace.root) + os.sep)
            info = workspace.inspect(path)
            if not inside or info.kind != "file" or info.size > LARGEST or len(found) == MOST:
                continue
            try:
                found[word] = workspace.load(path).data.decode()
            except (OSError, UnicodeDecodeError):
                continue
        return found
