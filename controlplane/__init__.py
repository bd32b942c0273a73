"""Holdshort's control plane: durable human approvals on PostgreSQL."""
