"""Owns the studio's pages: HTML from the server that works as links and forms, made livelier by a little script."""
