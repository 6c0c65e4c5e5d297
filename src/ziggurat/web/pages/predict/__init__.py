"""The page on which a model predicts single images."""
