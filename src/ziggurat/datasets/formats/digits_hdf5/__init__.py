"""HDF5 files of DIGITS."""
