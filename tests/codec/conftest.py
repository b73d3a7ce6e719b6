"""What tests of the codec share."""

from commands import command, start_command

__all__ = ["command", "start_command"]
