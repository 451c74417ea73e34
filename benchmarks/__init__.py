"""Measurements of drlogit beside other software: see README.md in this folder.

Three kinds of file, as in benchopt: what is solved (``cases``), who solves it
(``competitors``), and who says how well (``judge``).  ``runs`` fills tables of rows that
``tables`` only reads.
"""
