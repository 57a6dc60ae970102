"""The inline terminal interface: a conversation that stays in the terminal's own scrollback."""
