"""Installing plugins: where they come from, where they are kept, what is known about them."""
