"""Files, images and clipboard contents attached to prompts."""
