"""Files of DOTA."""
