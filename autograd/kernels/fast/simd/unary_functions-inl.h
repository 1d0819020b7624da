/// The functions of unary_functions.h and their derivatives, on vectors of `real`. `value(x)` is
/// f(x) and `gradient(x, y, dy)` is dy f'(x), computed from x or from y = f(x), whichever the
/// function needs.
#if defined(HEED_KERNELS_UNARY_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_UNARY_FUNCTIONS_INL_H_
#undef HEED_KERNELS_UNARY_FUNCTIONS_INL_H_
#else
#define HEED_KERNELS_UNARY_FUNCTIONS_INL_H_
#endif

#include "autograd/kernels/fast/simd/exp-inl.h"
#include "autograd/kernels/fast/unary_names.h"
#include "hwy/contrib/math/math-inl.h"

#if HEED_SIMD
HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {

constexpr bool in_double = sizeof(real) == 8;
constexpr real real_infinity = std::numeric_limits<real>::infinity();

HWY_INLINE Vector zero() { return hn::Zero(Tag()); }
HWY_INLINE Mask negative(Vector x) { return hn::Lt(x, zero()); }
HWY_INLINE Vector minus_abs(Vector x) { return hn::Or(x, hn::SignBit(Tag())); }

struct Neg {
  static constexpr auto function = UnaryFunction::neg;
  static HWY_INLINE Vector value(Vector x) { return hn::Neg(x); }
  static HWY_INLINE Vector gradient(Vector, Vector, Vector dy) { return hn::Neg(dy); }
};

struct Exp {
  static constexpr auto function = UnaryFunction::exp;
  static HWY_INLINE Vector value(Vector x) {
    const Power<Vector> e = exp_power(x, zero());
    const Mask overflows = hn::Gt(x, set(in_double ? real(710) : real(89)));
    return hn::IfThenElse(overflows, set(real_infinity), times_power(e.one_plus_m(), e.n));
  }
  static HWY_INLINE Vector gradient(Vector, Vector y, Vector dy) { return hn::Mul(dy, y); }
};

struct Log {
  static constexpr auto function = UnaryFunction::log;
  static HWY_INLINE Vector value(Vector x) {
    // Highway's Log supports only positive, finite numbers.
    Vector y = hn::Log(Tag(), x);
    y = hn::IfThenElse(hn::Eq(x, set(real_infinity)), x, y);
    y = hn::IfThenElse(hn::Eq(x, zero()), set(-real_infinity), y);
    const Mask in_domain = hn::Ge(x, zero());  // NaN is outside the domain
    return hn::IfThenElse(in_domain, y, hn::NaN(Tag()));
  }
  static HWY_INLINE Vector gradient(Vector x, Vector, Vector dy) { return hn::Div(dy, x); }
};

struct Sqrt {
  static constexpr auto function = UnaryFunction::sqrt;
  static HWY_INLINE Vector value(Vector x) { return hn::Sqrt(x); }
  static HWY_INLINE Vector gradient(Vector, Vector y, Vector dy) {
    return hn::Div(hn::Mul(set(real(0.5)), dy), y);
  }
};

struct Tanh {
  static constexpr auto function = UnaryFunction::tanh;
  static HWY_INLINE Vector value(Vector x) { return hn::Tanh(Tag(), x); }
  static HWY_INLINE Vector gradient(Vector, Vector y, Vector dy) {
    return hn::Mul(dy, hn::NegMulAdd(y, y, set(1)));
  }
};

struct Relu {
  static constexpr auto function = UnaryFunction::relu;
  static HWY_INLINE Vector value(Vector x) { return hn::IfThenZeroElse(hn::Le(x, zero()), x); }
  static HWY_INLINE Vector gradient(Vector, Vector y, Vector dy) {
    return hn::IfThenZeroElse(hn::Le(y, zero()), dy);
  }
};

/// The parts of σ(x) and σ(−x): σ(|x|) = c and σ(−|x|) = c e, with e = e^−|x|.
struct SigmoidParts {
  Power<Vector> e;
  Vector c;
  HWY_INLINE explicit SigmoidParts(Power<Vector> power) : e(power) {
    c = hn::Div(set(1), hn::Add(set(1), times_power(e.one_plus_m(), e.n)));
  }
  /// factor · σ(−|x|). If it is denormal, only the multiplication by a power of two loses digits.
  HWY_INLINE Vector small(Vector factor) const {
    return times_power(e.times(hn::Mul(factor, c)), e.n);
  }
};
/// x σ(u), where u has the sign of x and e is e^−|u|; 0 if x is -inf or so negative that the result
/// underflows.
HWY_INLINE Vector times_sigmoid(Vector x, Power<Vector> e) {
  const SigmoidParts s(e);
  return hn::IfThenElse(negative(x), s.small(x), hn::Mul(x, s.c));
}
/// σ(u) + x σ(u) σ(−u) u', the derivative of x σ(u). e and du are e^−|u| and u'; `far` selects
/// lanes where the second term underflows (and might be computed as inf · 0).
HWY_INLINE Vector times_sigmoid_slope(Vector x, Power<Vector> e, Vector du, Mask far) {
  const SigmoidParts s(e);
  const Vector small = s.small(set(1));
  const Vector sigma = hn::IfThenElse(negative(x), small, s.c);
  return hn::Add(sigma, hn::IfThenZeroElse(far, hn::Mul(hn::Mul(x, du), hn::Mul(small, s.c))));
}

struct Sigmoid {
  static constexpr auto function = UnaryFunction::sigmoid;
  static HWY_INLINE Vector value(Vector x) {
    const SigmoidParts s(exp_power(minus_abs(x), zero()));
    return hn::IfThenElse(negative(x), s.small(set(1)), s.c);
  }
  static HWY_INLINE Vector gradient(Vector, Vector y, Vector dy) {
    return hn::Mul(dy, hn::NegMulAdd(y, y, y));
  }
};

struct Silu {
  static constexpr auto function = UnaryFunction::silu;
  static HWY_INLINE Vector value(Vector x) {
    return times_sigmoid(x, exp_power(minus_abs(x), zero()));
  }
  static HWY_INLINE Vector gradient(Vector x, Vector, Vector dy) {
    const Mask far = hn::Gt(hn::Abs(x), set(in_double ? real(800) : real(120)));
    return hn::Mul(dy, times_sigmoid_slope(x, exp_power(minus_abs(x), zero()), set(1), far));
  }
};

struct Gelu {
  static constexpr auto function = UnaryFunction::gelu;

  /// (t + 4) Φ(−t) e^(t²/2) for t ≥ 0, a scaled complementary error function, as a polynomial in
  /// q = (t − 4) / (t + 4), after Shepherd and Laframboise, "Chebyshev approximation of
  /// (1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞", Math. Comp. 36 (1981). `part` is t / (t + 4).
  /// Coefficients: Chebyshev fits, computed with 60 digits, for t ≤ 14.6 (relative error 1.3e-8)
  /// and, in double, t ≤ 39 (2.2e-18).
  static HWY_INLINE Vector scaled_tail(Vector part) {
#ifdef HEED_DOUBLE
    static constexpr real c[] = {
        0.7552851304157514929,     -0.6078966419718920878,   0.3871374007422146557,
        -0.1865218579596593708,    0.06039657489093021563,   -0.007540188966659892779,
        -0.003479692367252080827,  0.001630818456623573289,  0.0001333443107426556025,
        -0.0002310949275146249678, -1.908246736207169732e-6, 0.00003514464951429031794,
        7.166136531522344406e-7,   -5.920063789109943421e-6, -6.295418937455187947e-7,
        1.021346127668307426e-6,   2.715064876688306314e-7,  -1.547220083448871983e-7,
        -8.504053459156654793e-8,  1.312087826831195134e-8,  1.934655833076747295e-8,
        1.964327680621977122e-9,   -2.416548080318924628e-9, -7.268553477210609046e-10,
        -1.428076375615486078e-11};
#else
    static constexpr real c[] = {
        0.7552851385F,    -0.6078966037F,   0.3871366799F,   -0.1865230677F,   0.0604064176F,
        -0.007526833246F, -0.003523051908F, 0.001568784782F, 0.0001935910708F, -0.0001235153559F};
#endif
    return polynomial(hn::MulSub(part, set(2), set(1)), c);
  }
  /// e^(−x²/2), with a correction for the rounding of x².
  static HWY_INLINE Power<Vector> bell(Vector x) {
    const Vector half = hn::Mul(x, set(real(-0.5)));
    const Vector s = hn::Mul(x, half);
    return exp_power(s, hn::MulSub(x, half, s));
  }

  /// x Φ(x) from `tail`, which is x Φ(−|x|): for x < 0, where 1 + erf would cancel, it is `tail`;
  /// otherwise, x − `tail`.
  static HWY_INLINE Vector value(Vector x) {
    const Power<Vector> e = bell(x);
    const Vector four = set(4), t = hn::Abs(x), sum = hn::Add(t, four);
    const Vector part = hn::Div(x, sum), scaled = scaled_tail(hn::Abs(part));
    const Vector product = hn::Mul(part, scaled);
    // The result is corrected for the rounding errors of the sum and the product; otherwise the
    // error in float would be up to 4.5 units in the last place.
    const Vector lost_sum = hn::Sub(t, hn::Sub(sum, four)),
                 lost = hn::MulSub(part, scaled, product);
    const Vector inverse = hn::NegMulAdd(hn::Abs(part), set(real(0.25)), set(real(0.25)));  // 1/sum
    const Vector m = hn::NegMulAdd(lost_sum, inverse, e.m);
    const Vector tail = times_power(hn::Add(product, hn::MulAdd(product, m, lost)), e.n);
    return hn::IfThenElse(negative(x), tail, hn::Sub(x, tail));
  }
  /// Φ(x) + x φ(x)
  static HWY_INLINE Vector gradient(Vector x, Vector, Vector dy) {
    const Power<Vector> e = bell(x);
    const Vector w = hn::Div(set(1), hn::Add(hn::Abs(x), set(4)));
    const Vector tail = hn::Mul(w, scaled_tail(hn::Mul(hn::Abs(x), w)));
    // With e = e^(−x²/2) and `tail` = Φ(−|x|) / e, the derivative is e (tail + x / √(2π)) for x < 0
    // and 1 + e (x / √(2π) − tail) for x ≥ 0. One exponential serves both terms.
    const Vector density = hn::Mul(x, set(real(0.39894228040143267794)));
    const Vector both = hn::IfThenElse(negative(x), hn::Add(density, tail), hn::Sub(density, tail));
    const Vector bent = times_power(e.times(both), e.n);
    return hn::Mul(dy, hn::IfThenElse(negative(x), bent, hn::Add(set(1), bent)));
  }
};

struct GeluTanh {
  static constexpr auto function = UnaryFunction::gelu_tanh;
  static constexpr double c = 1.5957691216057307118, k = 0.044715;  // c: 2 √(2/π)

  /// e^−|2u|, 2u = c x (1 + k x²), because (1 + tanh u) / 2 = σ(2u). In the float build, the
  /// exponent is computed in double, because the relative error of e^v is |v| times that of v.
  static HWY_INLINE Power<Vector> power(Vector x) {
#ifdef HEED_DOUBLE
    const Vector u =
        hn::Mul(hn::Mul(minus_abs(x), set(c)), hn::MulAdd(hn::Mul(x, x), set(k), set(1)));
    return exp_power(u, zero());
#else
    using C = ExpConstants<double>;
    const auto reduce = [](Wide t, Wide& n) HWY_ATTR {
      const Wide u =
          hn::Mul(hn::Mul(t, set_wide(c)), hn::MulAdd(hn::Mul(t, t), set_wide(k), set_wide(1)));
      n = hn::Round(hn::Mul(u, set_wide(C::log2e)));
      return hn::NegMulAdd(n, set_wide(C::ln2_high), u);
    };
    const Vector t = minus_abs(x);
    Wide n_low, n_high;
    const Wide low = reduce(widen(hn::LowerHalf(t)), n_low);
    const Wide high = reduce(widen(hn::UpperHalf(NarrowTag(), t)), n_high);
    return {exp_polynomial(hn::Combine(Tag(), narrow(high), narrow(low))),
            hn::Combine(Tag(), narrow(n_high), narrow(n_low))};
#endif
  }
  static HWY_INLINE Vector value(Vector x) { return times_sigmoid(x, power(x)); }
  static HWY_INLINE Vector gradient(Vector x, Vector, Vector dy) {
    const Vector du =
        hn::MulAdd(hn::Mul(x, x), set(static_cast<real>(3 * k * c)), set(static_cast<real>(c)));
    return hn::Mul(dy, times_sigmoid_slope(x, power(x), du, hn::Gt(hn::Abs(x), set(40))));
  }
};

/// Calls body(F()) with the struct F of the function f.
template <class Body, class... Structs>
HWY_INLINE void with_one_of(UnaryFunction f, const Body& body, Structs... structs) {
  static_assert(sizeof...(Structs) == unary_function_count,
                "expected one struct for each function");
  (void)((f == structs.function && (body(structs), true)) || ...);
}
template <class Body>
HWY_INLINE void with_unary_function(UnaryFunction f, const Body& body) {
  with_one_of(f, body, Neg(), Exp(), Log(), Sqrt(), Tanh(), Relu(), Gelu(), GeluTanh(), Sigmoid(),
              Silu());
}

}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();
#endif  // HEED_SIMD
#endif  // guard
