cdef enum:
    # rows of a state's table; without flips it has only the first two
    U, S, T, R, C, A, Q, TABLES

cdef enum:
    # rows of a direction: changes of u, t, r, c (that of a is minus that of c)
    DU, DT, DR, DC, STEPS

cdef class PairState:
    """What a block of samples remembers; visits make new states and leave the old ones alone.

    kappa    flip costs, NEVER where the label cannot flip; empty in a problem without flips
    slope    s of a linear loss -s u for each sample; empty with the log-loss
    now      the table of U to Q
    second   second-order terms of both products, after ``predict_pair``
    step     the direction, after ``correct_pair``
    """
    cdef const double[::1] kappa, slope
    cdef double[:, ::1] now, second, step
