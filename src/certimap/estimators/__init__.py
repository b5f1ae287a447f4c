"""scikit-learn estimators: certified MAP clustering and topic models."""
