"""JSON-RPC for the Copilot SDKs: frames, peers, sessions they share, one module per namespace."""
