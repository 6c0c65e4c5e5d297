"""Callbacks for every framework: checkpointing, scheduling, monitoring, logging and evaluation."""
