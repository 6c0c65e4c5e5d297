"""Network access: which addresses may be asked, and the HTTP transport and client that keep to it."""
