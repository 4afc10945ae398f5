"""Addresses of servers: commands, URLs, variables and headers."""

import pytest

from promptkit.foreign.address import parse_address


def test_a_command_is_split_as_a_shell_does_and_expands_nothing():
    address = parse_address("npx -y 'a b' \"$HOME\" '*' ; rm")

    assert address.words == ("npx", "-y", "a b", "$HOME", "*", ";", "rm")


def test_a_secret_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text("Bearer abc\n", encoding="utf-8")
    monkeypatch.setenv("API_KEY", "k1")

    over_http = parse_address("https://x.example/mcp", headers=[f"Authorization=@{token}", "X-A=@@b"])
    command = parse_address("server", variables=["API_KEY", "MODE=a=b"])

    assert over_http.headers == {"Authorization": "Bearer abc", "X-A": "@b"}
    assert command.variables == {"API_KEY": "k1", "MODE": "a=b"}


def test_the_label_of_a_url_has_no_secrets():
    address = parse_address("https://user:secret@x.example:8443/mcp?key=secret#secret")

    assert address.label == "https://x.example:8443/mcp"


@pytest.mark.parametrize(
    ("server", "headers", "variables", "message"),
    [
        ("npx 'a", (), (), "unclosed quote"),
        ("  ", (), (), "is empty"),
        ("http://x", ["Authorization"], (), "'Authorization' is not a valid HTTP header"),
        ("http://x", ["a b=c"], (), "'a b' is not a valid HTTP header"),
        ("http://x", ["X=a\r\nY: b"], (), "line break"),
        ("http://x", ["X=@nowhere"], (), "cannot be read from 'nowhere': No such file"),
        ("server", (), ["PROMPTKIT_NO_SUCH_VARIABLE"], "is not set"),
        ("server", (), ["=x"], "does not name an environment variable"),
    ],
)
def test_an_invalid_address_is_rejected(server, headers, variables, message):
    with pytest.raises(ValueError, match=message):
        parse_address(server, headers, variables)
