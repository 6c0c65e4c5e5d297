"""Import of networks of Torch: files in Lua and saved models, written as a network file for PyTorch that agrees."""
