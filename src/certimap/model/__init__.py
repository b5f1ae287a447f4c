"""The model language: variables, factors, hard and soft constraints, blocks."""
