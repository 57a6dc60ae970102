"""Keeps commands to a policy by means of the operating system, whatever the commands try."""
