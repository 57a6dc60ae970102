"""The state of one conversation: its log, what is folded from it, and the folders on disk."""
