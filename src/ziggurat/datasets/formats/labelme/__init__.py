"""Files of LabelMe."""
