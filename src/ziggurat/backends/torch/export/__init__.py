"""Model export: the files of each format, verified against the outputs of the network."""
