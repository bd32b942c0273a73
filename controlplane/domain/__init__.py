"""What may happen: pure functions on frozen structs; no clock, no I/O, no async."""
