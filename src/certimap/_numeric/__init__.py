"""Floating-point helpers without knowledge of models."""
