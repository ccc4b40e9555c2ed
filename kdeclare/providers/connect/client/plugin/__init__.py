"""The Connect plug-in for dynamic configuration of workers (KIP-1185): its Java sources, build and
installation.
"""
