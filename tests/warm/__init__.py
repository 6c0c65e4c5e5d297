"""A process for the tests of one framework that has imported it, and forks workers and one-shot commands on request."""
