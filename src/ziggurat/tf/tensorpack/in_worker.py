"""The import hook for worker processes of data flows: importing this module installs it."""

from ziggurat.tf.tensorpack import hook

hook.install()
