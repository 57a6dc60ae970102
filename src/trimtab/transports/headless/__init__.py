"""One prompt from a script or a person, answered as text or as lines of JSON."""
