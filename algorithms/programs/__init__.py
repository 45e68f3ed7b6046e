"""Query programs: operators over batches of rows, which run on the host and inside a drive alike."""
