"""Owns the warm process of a trained network: it loads the network once and answers requests until nobody asks."""
