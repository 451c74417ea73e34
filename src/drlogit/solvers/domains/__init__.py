"""The interior point for features with domains: pieces are found while it runs."""
