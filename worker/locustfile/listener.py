# What the master does with the workers' reports.
