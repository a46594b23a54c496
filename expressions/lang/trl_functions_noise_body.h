/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Part of trl_functions_body.h: normal random numbers. */
#ifndef TRL_FUNCTIONS_NOISE_BODY_H
#define TRL_FUNCTIONS_NOISE_BODY_H

/* One step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
TRL_BODY trl_fn_word trl_fn_split_mix(trl_fn_word h)
{
    h += 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

/* From 52 of the bits, a number in [1, 2): no conversion of integers, which few processors have for vectors. */
TRL_BODY double trl_fn_from_1_to_2(trl_fn_word h)
{
    return trl_fn_double(h >> 12 | 0x3ff0000000000000u);
}

/* Normal, of mean 0 and variance 1, a function of its operands alone: two uniform numbers by hashing, of which Box and
 * Muller ("A note on the generation of random normal deviates", 1958) make a normal one, of at most 8.5. */
TRL_BODY double trl_fn_normal(double point, double step, double seed)
{
    trl_fn_word h = trl_fn_split_mix(trl_fn_bits(seed));
    h = trl_fn_split_mix(h + trl_fn_bits(step));
    h = trl_fn_split_mix(h ^ trl_fn_bits(point));
    double radius = TRL_FN_SQRT(-2.0 * trl_fn_log(2.0 - trl_fn_from_1_to_2(h)));
    double turns = trl_fn_from_1_to_2(trl_fn_split_mix(h)) - 1.0;
    return radius * trl_fn_cos_near(turns * (4.0 * TRL_FN_PI_2));
}

#endif
