"""The table of keys: what each does. Bindings, the key card and the guide come from it."""

import msgspec


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key. `names` are prompt_toolkit's names for its sequences; `action` a method's name."""

    shown: str
    names: tuple[tuple[str, ...], ...]
    action: str
    help: str


SENDING, EDITING, LOOKING, STOPPING = "Sending", "Editing", "Looking", "Stopping and leaving"

KEYS: dict[str, tuple[Key, ...]] = {
    SENDING: (
        Key(
            shown="Enter",
            names=(("enter",),),
            action="press_enter",
            help="Send the prompt. While the agent works it steers: the agent reads it next.",
        ),
        Key(
            shown="Ctrl-Q, Ctrl-Enter",
            names=(("c-q",),),
            action="queue_prompt",
            help="Queue the prompt until the agent is done. The setting `enterQueues` swaps both.",
        ),
        Key(
            shown="Alt-Enter, Ctrl-J, Shift-Enter",
            names=(("escape", "enter"), ("c-j",)),
            action="insert_newline",
            help="Begin a new line.",
        ),
        Key(
            shown="Ctrl-B, Ctrl-X b",
            names=(("c-b",), ("c-x", "b")),
            action="send_to_background",
            help="Send the running command to the background: the agent goes on beside it.",
        ),
        Key(
            shown="Shift-Tab",
            names=(("s-tab",),),
            action="cycle_mode",
            help="Switch the mode: interactive, plan, autopilot.",
        ),
    ),
    EDITING: (
        Key(
            shown="Tab",
            names=(("tab",),),
            action="press_tab",
            help="Take the marked completion of a command or file.",
        ),
        Key(
            shown="Up, Down",
            names=(("up",), ("c-p",)),
            action="press_up",
            help="Move; at the first or last row: earlier prompts that begin the same way. Up in "
            "an empty editor takes back the last waiting prompt.",
        ),
        Key(shown="", names=(("down",), ("c-n",)), action="press_down", help=""),
        Key(
            shown="Ctrl-R",
            names=(("c-r",),),
            action="search_history",
            help="Search the prompts of all sessions; Tab narrows the search to this folder.",
        ),
        Key(
            shown="Ctrl-X /",
            names=(("c-x", "/"),),
            action="begin_command",
            help="Type a command beside the draft, which comes back afterwards.",
        ),
        Key(
            shown="Ctrl-S",
            names=(("c-s",),),
            action="stash_draft",
            help="Put the draft aside; again in an empty editor brings it back.",
        ),
        Key(
            shown="Ctrl-G, Ctrl-X e",
            names=(("c-g",), ("c-x", "e")),
            action="open_editor",
            help="Edit the draft in $VISUAL or $EDITOR.",
        ),
        Key(
            shown="Ctrl-V, Alt-V",
            names=(("c-v",), ("escape", "v")),
            action="paste_image",
            help="Attach the image in the clipboard.",
        ),
        Key(shown="", names=(("<bracketed-paste>",),), action="paste", help=""),
        Key(shown="", names=(("backspace",), ("c-h",)), action="erase", help=""),
        Key(
            shown="Ctrl-_",
            names=(("c-_",),),
            action="undo_edit",
            help="Undo the last change of the draft.",
        ),
    ),
    LOOKING: (
        Key(
            shown="Ctrl-O, Ctrl-E",
            names=(("c-o",),),
            action="open_folded",
            help="Open what is folded (output, diffs, reasoning) in a pager; q leaves it. Ctrl-E "
            "does so in an empty editor.",
        ),
        Key(shown="", names=(("c-e",),), action="press_end", help=""),
        Key(
            shown="Ctrl-T",
            names=(("c-t",),),
            action="open_reasoning",
            help="Open the last reasoning in a pager.",
        ),
        Key(
            shown="Ctrl-F",
            names=(("c-f",),),
            action="search_conversation",
            help="In an empty editor: search this conversation; Enter reads on from there.",
        ),
        Key(
            shown="Ctrl-X o",
            names=(("c-x", "o"),),
            action="open_link",
            help="Open the last address of the conversation in the browser, or copy it.",
        ),
        Key(
            shown="Ctrl-X g",
            names=(("c-x", "g"),),
            action="show_goal",
            help="Show the plan of the session.",
        ),
        Key(shown="", names=(("c-x", "v"),), action="refuse_voice", help=""),
        Key(shown="Ctrl-L", names=(("c-l",),), action="repaint", help="Paint the live rows again."),
        Key(shown="?", names=(("?",),), action="show_keys", help="In an empty editor: this card."),
    ),
    STOPPING: (
        Key(
            shown="Esc",
            names=(("escape",),),
            action="press_escape",
            help="Undo one thing: close the menu, answer a question with no, stop the turn. Twice "
            "in an empty editor: rewind; twice with a draft: clear it (it stays in the history).",
        ),
        Key(
            shown="Ctrl-C",
            names=(("c-c",),),
            action="interrupt",
            help="Stop the turn, then clear the draft (it stays in the history); twice leaves.",
        ),
        Key(
            shown="Ctrl-D, Ctrl-X x",
            names=(("c-d",), ("c-x", "x")),
            action="press_eof",
            help="Leave, if nothing is typed.",
        ),
        Key(
            shown="Ctrl-Z",
            names=(("c-z",),),
            action="suspend",
            help="Suspend; `fg` brings the conversation back.",
        ),
    ),
}

ANSWER_KEYS = (
    ("1 or y", "Yes, once."),
    ("2 or !", "Yes, and allow the rule that is shown for this session."),
    ("3", "Yes, and allow that rule always in this folder."),
    ("4 or n, Esc", "No."),
    ("5", "No, and say why: the words go to the model."),
    ("6", "Yes, and allow reading the folder that is shown always in every folder."),
    ("c", "Yes, and allow what belongs together with it always in this folder."),
    ("d", "Yes, and allow everyday work on a trusted project always in this folder."),
    ("e", "Edit the rule that 2 and 3 would allow, or the plan that is asked about."),
    ("?", "Explain a permission question: what it would touch, and why it is asked."),
    ("Up, Down, Enter", "Mark a choice and take it; nothing is marked at first."),
)
"""The keys of permission questions; `questions` gives other questions the same ones."""
