"""What is done: one function is the inside of one transaction that it is given."""
