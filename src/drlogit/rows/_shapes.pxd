cdef inline int fit(bint lengths, str what) except -1:
    """Every function that Python calls checks lengths once per visit, in all builds: loops read
    what is behind an array.
    """
    if not lengths:
        raise ValueError(f"{what}: the lengths of these arrays do not belong together")
    return 0
