"""Export and import of whole conversations with their memory."""
