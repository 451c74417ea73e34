"""``Lanes``: LANES numbers in double precision that are computed with at once.

The vectors of GCC and Clang are four doubles, in one register or in two: the results are the same.
Other compilers get one double.

``FAST_LANES`` says whether loops with lanes are worth having: where they are compiled for AVX2, too
(``_clones.pxd``).  With the two doubles that every processor has, they take up to twice as long as
BLAS, which knows its processor.
"""
cdef extern from *:
    """
    #include <string.h>
    #ifdef __GNUC__
    #define LANES 4
    /* Compiled for the processor of the function that calls them: never a function of their own. */
    #define LANES_INLINE static inline __attribute__((always_inline))
    typedef double Lanes __attribute__((vector_size(32)));
    LANES_INLINE Lanes lanes_of_floats(const float *x) {
        /* In clones, GCC 12 converts in two halves with __builtin_convertvector. */
        return (Lanes){x[0], x[1], x[2], x[3]};
    }
    LANES_INLINE Lanes lanes_of_doubles(const double *x) {
        Lanes found;
        memcpy(&found, x, sizeof found);
        return found;
    }
    #define lanes(x) _Generic((x), const float *: lanes_of_floats, \
                              default: lanes_of_doubles)(x)
    LANES_INLINE double lanes_sum(Lanes x) { return (x[0] + x[1]) + (x[2] + x[3]); }
    LANES_INLINE void lanes_store(Lanes x, double *out) { memcpy(out, &x, sizeof x); }
    #else
    #define LANES 1
    typedef double Lanes;
    #define lanes(x) ((double)*(x))
    #define lanes_sum(x) (x)
    #define lanes_store(x, out) (*(out) = (x))
    #endif
    static const Lanes NO_LANES = {0};
    #ifdef WITH_LANES
    #define FAST_LANES 1
    #else
    #define FAST_LANES 0
    #endif
    """
    # For Cython a Lanes is a double: it writes sums and products, and C knows what they are of.
    ctypedef double Lanes
    const int LANES, FAST_LANES
    const Lanes NO_LANES                                # zeros
    Lanes lanes(const void* x) noexcept nogil           # the next floats or doubles from x on
    double lanes_sum(Lanes x) noexcept nogil
    void lanes_store(Lanes x, double* out) noexcept nogil
