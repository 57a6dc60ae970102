"""The bundled example: a small project with one wrong line, and a script for the scripted model."""
