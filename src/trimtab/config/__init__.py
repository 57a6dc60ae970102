"""What a person set up: where files live, and how small files are replaced without losing one."""
