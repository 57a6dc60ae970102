"""The two loops of an agent, and the processors that take part in them."""
