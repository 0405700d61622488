"""Git: one repository, its jobs and branches, and what was applied."""
