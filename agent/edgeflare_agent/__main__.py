"""Start of the agent. Any Python since 2.7 parses this file, so that one too old can say so."""

import os
import sys

EXIT_OLD_PYTHON = 64
EXIT_NO_NUMPY = 65


def _refuse(status, sentence):
    # type: (int, str) -> None
    sys.stderr.write(sentence + "\n")
    sys.exit(status)


def take_wire():
    # type: () -> tuple[int, int]
    """Return stdin and stdout as file descriptors of their own, for the wire alone.

    Whatever a library prints from here on goes to stderr, and what a library's child process reads
    is empty.
    """
    wire_in, wire_out = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return wire_in, wire_out


def _main():
    # type: () -> None
    if sys.version_info < (3, 8):
        _refuse(
            EXIT_OLD_PYTHON,
            "EdgeFlare's agent needs Python 3.8 or newer; {} is {}. Install a newer one, or "
            'name it as "python" in the device\'s inventory entry.'.format(
                sys.executable, sys.version.split()[0]
            ),
        )
    from edgeflare_agent.install_hints import how_to_install, is_installed

    if not is_installed("numpy"):
        _refuse(EXIT_NO_NUMPY, "numpy is missing: {}".format(how_to_install("numpy")))
    wire_in, wire_out = take_wire()
    from edgeflare_agent.server import serve

    serve(wire_in, wire_out, sys.argv[1:])


if __name__ == "__main__":
    _main()
