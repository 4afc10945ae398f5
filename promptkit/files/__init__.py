"""The only modules that open, write or remove files of users and repositories."""
