"""The command line: arguments become one transport."""
