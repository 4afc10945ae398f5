"""The version of promptkit, written once: the build and the server read it here."""

VERSION = "0.1.0"
