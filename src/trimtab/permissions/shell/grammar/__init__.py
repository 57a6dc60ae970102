"""Reads the text of a shell script: words, expansions, commands, functions."""
