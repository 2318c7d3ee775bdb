"""Approval of tool calls: policy, the user's rules, known programs and commands, pending questions."""
