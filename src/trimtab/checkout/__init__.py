"""The folder a session works in: repository, branch, git worktree."""
