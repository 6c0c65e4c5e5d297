"""Owns what each framework gives the loop: one module or package a backend, none of which knows another."""
