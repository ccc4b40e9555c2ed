"""From the project file to policies that can be asked; all that other people's code can do wrong is said."""
