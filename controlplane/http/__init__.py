"""How it is asked: one file a resource, and the only place that knows status codes, headers and JSON fields."""
