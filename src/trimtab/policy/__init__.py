"""Policy: folder trust, permission rules in files, content exclusions and the sandbox."""
