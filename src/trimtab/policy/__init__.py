"""Policies of people and organizations: folder trust, rules in files, exclusions, approvals."""
