"""Export and import of whole conversations, with what the memory made of them."""
