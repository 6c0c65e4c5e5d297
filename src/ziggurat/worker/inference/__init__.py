"""Inference process of a trained network: it loads the network once and serves requests until none arrive."""
