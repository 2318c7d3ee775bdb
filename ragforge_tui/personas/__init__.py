"""Personas: the characters an agent can have, as `.luciform` texts that reach the model exactly as written."""

from ragforge_tui.personas.library import Persona, PersonaLibrary, key_of, persona_of, usable, user_name

__all__ = ["Persona", "PersonaLibrary", "key_of", "persona_of", "usable", "user_name"]
