"""The requests to the engine, by subject; `protocol` joins them, and everybody else imports them from there."""
