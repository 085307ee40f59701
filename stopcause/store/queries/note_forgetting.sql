INSERT INTO forgettings VALUES ($before, now() AT TIME ZONE 'UTC')
