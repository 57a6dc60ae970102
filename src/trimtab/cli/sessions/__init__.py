"""The actions of `trimtab sessions`, and the text they print."""
