"""What every way in shares: who asks, bytes to structs, refusals to replies, and the headers of all answers."""
