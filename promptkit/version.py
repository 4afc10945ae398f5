"""The version of promptkit, which the build and the server read from here."""

VERSION = "0.1.0"
