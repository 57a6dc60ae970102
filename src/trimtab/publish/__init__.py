"""Slash commands for git: commits, synchronised and merged branches, pull requests."""
