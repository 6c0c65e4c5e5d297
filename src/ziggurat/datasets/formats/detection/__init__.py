"""Code that the detection formats share."""
