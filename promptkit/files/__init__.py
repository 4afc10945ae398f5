"""Safe access to files of users and repositories: no other package opens, writes or removes them."""
