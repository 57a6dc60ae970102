"""The place an agent works in: files, search and processes of this machine."""
