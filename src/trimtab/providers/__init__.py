"""Model services: wires, endpoints, and the one module that opens connections."""
