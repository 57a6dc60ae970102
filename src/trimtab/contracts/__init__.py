"""Types and protocols that every layer shares; no I/O."""
