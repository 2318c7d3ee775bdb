"""Tools of the agent, confined to the workspace. `registry` lists them; each describes itself."""
