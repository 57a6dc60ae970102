"""May this happen? One decision point through which every effect passes."""
