"""The names of Tensorpack over ours: programs that were written with Tensorpack 0.8 to 0.11 run as they are.

Nothing here is imported by Ziggurat itself. ``hook.install()`` lets ``import tensorpack`` find the modules of
``names.MODULES`` in this process, and in this process alone; ``ziggurat run-tensorpack`` calls it.
"""
