"""Jobs on a Ray cluster: only the bridge, a process of its own, and the nodes load Ray."""
