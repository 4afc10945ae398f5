"""What stands in the configurations of clients, for the project that is the current folder."""

from pathlib import Path

from promptkit.clients.configurations import ConfigurationFile, read_servers


def file_of(name, scope="user"):
    """The file of a client."""
    return ConfigurationFile(name, scope, str(Path.cwd())).path


def entries(name, scope="user"):
    """The servers in it, by their names."""
    return read_servers(ConfigurationFile(name, scope, str(Path.cwd())))
