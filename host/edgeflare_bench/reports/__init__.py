"""A bench's reports: their documents, pictures and files."""
