"""The impact of changes to topics on records and consumers, which plans only show."""
