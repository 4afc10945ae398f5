"""Reads servers from clients' configuration files, for the project in the current folder."""

from pathlib import Path

from promptkit.clients.configuration_files import ConfigurationFile, read_servers


def config_path(name, scope="user"):
    """Return the path of a client's configuration file."""
    return ConfigurationFile(name, scope, str(Path.cwd())).path


def backup_path(output):
    """Return the path of the backup that a command has printed."""
    return Path(output.partition("    backup: ")[2].partition("\n")[0])


def entries(name, scope="user"):
    """Return the servers in a client's configuration file by their names."""
    return read_servers(ConfigurationFile(name, scope, str(Path.cwd())))
