"""Web pages of the studio: server-rendered HTML that works as links and forms, enhanced by a little script."""
