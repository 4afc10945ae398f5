"""Safe access to files of users and repositories. No other package opens, writes or removes such files."""
