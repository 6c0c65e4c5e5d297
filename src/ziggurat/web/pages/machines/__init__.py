"""Page of the machines that jobs run on."""
