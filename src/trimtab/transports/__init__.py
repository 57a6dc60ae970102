"""Ways to reach a session: each subscribes to events and answers questions."""
