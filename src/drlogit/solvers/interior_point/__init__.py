"""The interior point, which ``auto`` chooses."""
