"""KITTI labels."""
