"""The commands: one file of functions per subject, and the catalog that names them."""
