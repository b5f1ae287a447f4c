"""Local search for topics: moves of cells, words and documents, annealing, many starts."""
