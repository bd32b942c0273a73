"""What goes out: requests to addresses that callers gave."""
