"""Charts: functions from windows and figures to ``{data, layout}``, nothing else."""
