"""Independent re-checking of certificates."""
