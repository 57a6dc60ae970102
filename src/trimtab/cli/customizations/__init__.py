"""What the commands about customizations share: their arguments and how entries are shown."""
