"""The routes, by what they are about; each is a few lines over what the library does."""
