"""What people read of this project: collecting its texts, checking them, and drawing samples of them."""
