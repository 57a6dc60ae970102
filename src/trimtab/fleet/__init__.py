"""Many agents on one goal: a plan of todos, workers in worktrees, one branch of merged work."""
