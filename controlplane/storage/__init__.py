"""What is remembered: all SQL, one module an aggregate, one function a question."""
