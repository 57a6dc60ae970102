"""The folder a session works in: its repository, its branch, its git worktree."""
