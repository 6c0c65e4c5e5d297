"""Jobs on other machines: their folders are mirrored while they run, so that every reader works as on one machine."""
