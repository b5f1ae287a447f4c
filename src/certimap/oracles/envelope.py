"""placeholder while the family modules are written"""
