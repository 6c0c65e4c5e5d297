"""Image folders of Hugging Face."""
