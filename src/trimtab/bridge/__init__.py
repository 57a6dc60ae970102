"""A model server on this machine: other programs use the models that Trimtab has."""
