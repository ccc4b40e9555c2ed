"""Topics and configs by hand: the use-cases behind `kdeclare topic` and `kdeclare config`."""
