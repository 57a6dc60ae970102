"""Git by word: commits, synchronised and merged branches, pull requests."""
