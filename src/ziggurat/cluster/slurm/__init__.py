"""Jobs on a Slurm cluster, by its own commands, over a workspace on a folder that its nodes share."""
