"""When it is done: loops that every replica runs, with leases and no leader."""
