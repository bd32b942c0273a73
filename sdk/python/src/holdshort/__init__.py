"""Durable human approvals for AI agents."""
