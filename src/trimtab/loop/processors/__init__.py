"""The processors that need nothing but contracts; other packages define their own."""
