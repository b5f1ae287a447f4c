"""The paper's experiments, and the same comparison on a user's data."""
