"""Language servers: the protocol, the servers of a session, and what their answers mean."""
