"""The samples, wherever they are: blocks of rows, products with them, checks of what comes in."""
