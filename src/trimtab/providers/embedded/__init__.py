"""A small real model that runs in this process: no key, no server, no network."""
