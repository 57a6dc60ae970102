"""The transcript of a session in the terminal."""

from trimtab.contracts.text import neutralise
from trimtab.host.parts import Markdown, UserPrompt
from trimtab.transports.tui.cells import plain
from trimtab.transports.tui.transcript import Transcript


def test_escape_sequences_of_a_model_are_not_sent_to_the_terminal() -> None:
    transcript = Transcript()
    hostile = "a\x1b[2Jb\x1b]0;title\x07c\x9b31md"
    transcript.apply(Markdown(key="m", text=hostile, delta=hostile, done=True))
    transcript.apply(UserPrompt(key="p", text=hostile))
    text = "".join(plain(line) for line in transcript.take(80))
    assert not [
        character for character in text if ord(character) < 32 or 127 <= ord(character) < 160
    ]
    assert neutralise(hostile) in text
