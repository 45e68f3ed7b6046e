"""Drives served to other programs by NBD, the protocol of network block devices."""

COMMANDS = {"device": {"serve": "command:device_serve"}}
