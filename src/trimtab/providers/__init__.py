"""Model services: wires, endpoints, authentication, and the HTTP client."""
