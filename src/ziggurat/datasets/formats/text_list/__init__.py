"""Text lists of image paths and labels."""
