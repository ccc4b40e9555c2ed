"""Built-in providers: one package per external system."""
