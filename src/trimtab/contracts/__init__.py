"""The nouns all layers share: types and protocols, no I/O."""
