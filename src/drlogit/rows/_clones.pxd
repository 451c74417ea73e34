"""Functions of which the compiler makes two, one with vectors of four doubles for processors that
have them (AVX2).

Both give the same numbers: nothing is fused or added in another order.  Where compiler, linker or
processor know no such thing (``meson.build`` tries), there is one.  Return type ``cloned`` is
``void``.
"""
cdef extern from *:
    """
    #ifdef WITH_CLONES
    #define CLONED __attribute__((target_clones("avx2", "default")))
    #else
    #define CLONED
    #endif
    typedef const double *__restrict In;
    typedef double *__restrict Out;
    """
    ctypedef void cloned "CLONED void"
    # arrays that are read and written, and do not overlap with others of the same function
    ctypedef const double* In
    ctypedef double* Out
