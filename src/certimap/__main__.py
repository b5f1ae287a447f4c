"""`python -m certimap` is the command `certimap`."""

from certimap.cli.main import app

if __name__ == "__main__":
    app(prog_name="certimap")
