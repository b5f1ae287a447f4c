// Scalars and lanes: the one numeric type the node arithmetic is written in.
//
// On the CPU a `Pack` holds LANES doubles (a vector type of gcc and clang), on the GPU it is one double. LANES
// is fixed, so that sums are taken in the same order, and results agree bit for bit, whatever the instruction set.
// For the same reason products and sums must not be contracted (-ffp-contract=off, --fmad=false) and the logarithm
// is our own.
#pragma once

#if defined(__CUDACC__)
#define CM_FN __device__ __forceinline__
#else
#define CM_FN inline __attribute__((always_inline))
#endif

namespace certimap {

CM_FN double least(double a, double b) { return a < b ? a : b; }
CM_FN double most(double a, double b) { return a > b ? a : b; }
CM_FN double magnitude(double a) { return a < 0.0 ? -a : a; }
CM_FN double square(double a) { return a * a; }
CM_FN double choose(bool c, double a, double b) { return c ? a : b; }
CM_FN double total(double a) { return a; }
CM_FN double least_lane(double a) { return a; }
CM_FN double most_lane(double a) { return a; }

#if defined(__CUDACC__)
CM_FN double root(double a) { return sqrt(a); }
CM_FN double round_down(double a) { return floor(a); }
CM_FN double round_up(double a) { return ceil(a); }
CM_FN long long bits_of(double a) { return __double_as_longlong(a); }
CM_FN double from_bits(long long a) { return __longlong_as_double(a); }
#else
CM_FN double root(double a) { return __builtin_sqrt(a); }
CM_FN double round_down(double a) { return __builtin_floor(a); }
CM_FN double round_up(double a) { return __builtin_ceil(a); }
CM_FN long long bits_of(double a) {
    long long b;
    __builtin_memcpy(&b, &a, sizeof b);
    return b;
}
CM_FN double from_bits(long long b) {
    double a;
    __builtin_memcpy(&a, &b, sizeof a);
    return a;
}

constexpr int LANES = 4;
typedef double Pack __attribute__((vector_size(LANES * sizeof(double))));
typedef long long PackMask __attribute__((vector_size(LANES * sizeof(long long))));

CM_FN Pack least(const Pack& a, const Pack& b) { return a < b ? a : b; }
CM_FN Pack most(const Pack& a, const Pack& b) { return a > b ? a : b; }
CM_FN Pack choose(const PackMask& c, const Pack& a, const Pack& b) { return c ? a : b; }
CM_FN Pack square(const Pack& a) { return a * a; }
CM_FN double total(const Pack& a) { return (a[0] + a[2]) + (a[1] + a[3]); }
CM_FN double least_lane(const Pack& a) { return least(least(a[0], a[1]), least(a[2], a[3])); }
CM_FN double most_lane(const Pack& a) { return most(most(a[0], a[1]), most(a[2], a[3])); }
#endif

template <class V>
CM_FN V spread(double a) {
    return V{} + a;
}

// Natural logarithm of a positive normal number, error below 1 ulp (the classical atanh series with a minimax
// polynomial of degree 7 in s^2, argument reduced to [sqrt(1/2), sqrt(2))).
CM_FN double logarithm(double x) {
    const long long raw = bits_of(x);
    long long exponent = (raw >> 52) - 1023;
    double mantissa = from_bits((raw & 0x000fffffffffffffLL) | 0x3ff0000000000000LL);
    if (mantissa > 1.4142135623730951) {
        mantissa *= 0.5;
        exponent += 1;
    }
    const double f = mantissa - 1.0, s = f / (2.0 + f), z = s * s, k = (double)exponent, h = 0.5 * f * f;
    const double even = z * z;
    const double r =
        z * (0.6666666666666735130 +
             even * (0.2857142874366239149 + even * (0.1818357216161805012 + even * 0.1479819860511658591))) +
        even * (0.3999999999940941908 + even * (0.2222219843214978396 + even * 0.1531383769920937332));
    return k * 6.93147180369123816490e-01 - ((h - (s * (h + r) + k * 1.90821492927058770002e-10)) - f);
}

}  // namespace certimap
