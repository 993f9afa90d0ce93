"""What the tests of the command line share."""

from command_line import _plain_environment, finished_run, gatefit, model, process, refused, small

__all__ = ["_plain_environment", "finished_run", "gatefit", "model", "process", "refused", "small"]
