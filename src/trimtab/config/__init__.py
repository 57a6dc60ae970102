"""Settings, feature flags, trusted folders, the paths of a home folder, and safe file writes."""
