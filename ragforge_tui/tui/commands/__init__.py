"""What the commands do: one file of functions a subject, and the catalog that names them."""
