"""The command line: reads the arguments and starts one transport or one command."""
