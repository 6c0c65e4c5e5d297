"""Pool of warm processes that predict."""
