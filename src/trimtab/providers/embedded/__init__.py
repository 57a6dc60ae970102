"""The embedded model: a small model that runs in this process, without key or network."""
