"""The two loops of an agent, and the processors that step into them."""
