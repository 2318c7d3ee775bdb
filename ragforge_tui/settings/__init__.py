"""Settings: definition, loading, validation and editing."""
