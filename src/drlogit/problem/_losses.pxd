"""The log-loss and its conjugate, for compiled loops.

No branches and no calls, so that loops over a panel of samples take several of them at a time;
errors are three units in the last place at most.  Polynomials are those that agree with the
functions at the zeros of Chebyshev polynomials.
"""
from libc.math cimport fabs
from libc.string cimport memcpy
from drlogit.rows._clones cimport cloned


cdef inline double exp_minus(double x) noexcept nogil:
    """e^-x = 2^k e^r for x ≥ 0, with |r| ≤ log(2)/2; beyond 700 that of 700, which is nothing."""
    cdef double near = x if x < 700.0 else 700.0
    # k in the last bits of 1.5 · 2^52 + k
    cdef double rounded = near * -1.4426950408889634 + 6755399441055744.0
    cdef double k = rounded - 6755399441055744.0
    cdef double r = (-near - k * 0.6931471803691238) - k * 1.9082149292705877e-10, p
    cdef unsigned long long power, bits
    p = 2.7620201591031547e-07 + r * 2.5100472505694996e-08
    p = 2.4801521057868204e-05 + r * (2.7557268276905696e-06 + r * p)
    p = 0.0013888888917367081 + r * (0.00019841269863171557 + r * p)
    p = 0.041666666666623824 + r * (0.008333333333330039 + r * p)
    p = 0.5 + r * (0.16666666666666669 + r * p)
    p = 1.0 + (r + r * r * p)
    memcpy(&power, &rounded, sizeof(double))
    memcpy(&bits, &p, sizeof(double))
    bits += power << 52                 # where the exponent of a double begins
    memcpy(&p, &bits, sizeof(double))
    return p


cdef inline double twice_atanh(double z) noexcept nogil:
    """log((1 + z)/(1 - z)) for |z| ≤ 1/3."""
    cdef double t = z * z, p = 0.08800738486144674 + t * 0.1616404561194353
    p = 0.13314144209654935 + t * (0.12001072809590713 + t * p)
    p = 0.18181789436132859 + t * (0.15385570064958623 + t * p)
    p = 0.2857142856710876 + t * (0.22222222717427864 + t * p)
    p = 0.6666666666666666 + t * (0.40000000000014585 + t * p)
    return 2.0 * z + z * t * p


cdef inline double log_of(double x) noexcept nogil:
    """log(x) = k log(2) + log(m) with √½ ≤ m < √2, for normal numbers; of 0 some number."""
    cdef unsigned long long bits, biased, one = 0x3ff0000000000000, root = 0x3fe6a09e667f3bcd
    cdef unsigned long long large = 0x4330000000000000
    cdef unsigned long long fraction = 0x000fffffffffffff
    cdef double m, k
    memcpy(&bits, &x, sizeof(double))
    bits += one - root
    biased = (bits >> 52) | large       # 2^52 + k + 1023
    bits = (bits & fraction) + root
    memcpy(&m, &bits, sizeof(double))
    memcpy(&k, &biased, sizeof(double))
    k -= 4503599627371519.0
    return k * 0.6931471803691238 + (twice_atanh((m - 1.0) / (m + 1.0))
                                     + k * 1.9082149292705877e-10)


cdef inline double loss_terms(double u, double* s) noexcept nogil:
    """h(u) and s = 1/(1 + e^u)."""
    cdef double e = exp_minus(fabs(u)), q = 1.0 / (1.0 + e)
    s[0] = e * q if u > 0.0 else q
    return twice_atanh(e / (2.0 + e)) + (0.0 if u > 0.0 else -u)


cdef inline cloned losses(Py_ssize_t n, const double* u, double* s, double* h) noexcept nogil:
    """h(u) and s = 1/(1 + e^u) of a panel."""
    cdef Py_ssize_t i
    for i in range(n):
        h[i] = loss_terms(u[i], &s[i])


cdef inline double entropy(double s) noexcept nogil:
    """-s log(s) - (1 - s) log(1 - s), with what 1 - s rounds off."""
    cdef double rest = 1.0 - s if s < 1.0 else 0.0
    return -(s * log_of(s) + (rest * log_of(rest) + ((1.0 - rest) - s)))


cdef inline cloned add_entropies(Py_ssize_t n, const double* w, const double* s,
                                 double* total) noexcept nogil:
    """total += Σ w H(s) of a panel."""
    cdef Py_ssize_t i
    cdef double sum_ = 0.0
    for i in range(n):
        sum_ += w[i] * entropy(s[i])
    total[0] += sum_
