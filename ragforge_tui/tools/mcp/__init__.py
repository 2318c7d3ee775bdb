"""MCP client: servers that the user configured, whose tools the agent may call."""
