"""Safe access to the files of users and repositories, which no other package opens, writes or removes."""
