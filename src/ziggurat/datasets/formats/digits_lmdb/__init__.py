"""LMDB stores of DIGITS."""
