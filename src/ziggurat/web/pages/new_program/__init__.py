"""Page that submits a program."""
