"""What is put around a user's words before the model sees them."""

from trimtab.contracts.ids import timestamp
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run


class UserContext(Processor):
    """Adds the time to a prompt. The result is stored, so what the model saw never changes."""

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source != "user":
            return prompt
        import msgspec

        text = f"<current_datetime>{timestamp()}</current_datetime>\n\n{prompt.text}"
        return msgspec.structs.replace(prompt, transformed=text)
