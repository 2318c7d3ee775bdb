"""Approval of tool calls: policy, allowed commands, pending questions."""
