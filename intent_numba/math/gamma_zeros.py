"""lgamma next to its zeros: how does log|Gamma(-a)| stay exact beside the result where |Gamma(-a)| passes through 1?

From a = 2 on there is one zero on either side of every integer n, at about n +- 1/n!, except between 2 and 2.5, where there is
one, and below 2, where there is none. With d = a - n, which is exact, the zero d0 a pair and h = d - d0, the result is a
Taylor polynomial in h without constant term. It serves where |h| < 2^-8 |d0|, which the polynomials are cut for.
The tables end where no number of the format lies that close to a zero any more: 1/n! has become the spacing of numbers at n.
Error: within 0.75 ULP in f32 and f64.
"""
from __future__ import annotations

from dataclasses import dataclass

from intent_numba.math.pair import two_product, two_sum
from intent_numba.math.term import Term, fma, hexes, horner, where

NEAR = 2.0 ** -8


@dataclass(frozen=True)
class ZeroTable:
    """Columns of rows: below 2 (nothing is near), then from 2 on, above and below each integer in turn."""
    last: int
    """The last integer with rows."""
    zero: tuple[float, ...]
    zero_low: tuple[float, ...]
    slope: tuple[float, ...]
    slope_low: tuple[float, ...]
    higher: tuple[tuple[float, ...], ...]
    """The coefficients from h^2 on."""


NOWHERE = (1.0, 0.0, 1.0, 0.0)
"""A row whose zero, at d = 1, is near nothing."""


def _table(last: int, width: int, text: str) -> ZeroTable:
    padding = (*NOWHERE, *(0.0 for _ in range(width - len(NOWHERE))))
    rows = padding + hexes(text)
    zero, zero_low, slope, slope_low, *higher = (rows[k::width] for k in range(width))
    return ZeroTable(last, zero, zero_low, slope, slope_low, tuple(higher))


ZEROS = {
    "f32": _table(8, 7, """
        0x1.d3fe4cp-2 -0x1.ff0794p-27 -0x1.83fe96p+0 -0x1.acp-26 0x1.36eecp+2 -0x1.694p+0 0x1.18p+3
        -0x1.025f7ap-2 -0x1.e427p-27 0x1.ea12dap+0 0x1.2p-25 0x1.3268p+3 0x1.418p+4 0x1.f6p+5
        0x1.260dbcp-3 0x1.3cb35ep-28 -0x1.f20a66p+2 0x1.ap-27 0x1.9d4d2p+4 -0x1.c12p+6 0x1.26p+9
        -0x1.6e3aaep-5 -0x1.e80d7ap-34 0x1.4b99dap+4 -0x1.32p-21 0x1.f76dep+7 0x1.d26p+11 0x1.e8p+15
        0x1.4273c2p-5 0x1.99580cp-30 -0x1.aca5dp+4 0x1.6ep-21 0x1.44416p+8 -0x1.55ap+12 0x1.96p+16
        -0x1.1510b2p-7 -0x1.15032cp-34 0x1.d224a4p+6 -0x1.06p-22 0x1.b533cp+12 0x1.0d4p+19 0x1.76p+25
        0x1.0d4afep-7 0x1.6db21ap-35 -0x1.ed72ep+6 -0x1.06p-19 0x1.cecc4p+12 -0x1.254p+19 0x1.a2p+25
        -0x1.6d0a6ep-10 -0x1.7e5412p-39 0x1.661f6ap+9 0x1.0ep-17 0x1.f79dcp+17 0x1.d6ep+26 0x1.fp+35
        0x1.6b258ap-10 -0x1.06e624p-35 -0x1.69de4ap+9 0x1.c6p-19 0x1.fce24p+17 -0x1.de6p+26 0x1.fap+35
        -0x1.a044a4p-13 0x1.bbff3ep-40 0x1.3abf7ap+12 0x1.74p-14 0x1.8349ap+23 0x1.3dap+35 0x1.24p+47
        0x1.9fef7p-13 -0x1.e1482ep-42 -0x1.3b407ap+12 -0x1.48p-13 0x1.83e86p+23 -0x1.3e6p+35 0x1.26p+47
        -0x1.a01faap-16 0x1.cf0f2ap-42 0x1.3af77p+15 -0x1.b4p-13 0x1.838e8p+29 0x1.3dep+44 0x1.26p+59
        0x1.a0145ap-16 -0x1.b04f9ap-47 -0x1.3b089p+15 0x1.2ap-13 0x1.83a38p+29 -0x1.3ep+44 0x1.26p+59
        """),
    "f64": _table(16, 10, """
        0x1.d3fe4b007c361p-2 -0x1.541360cea0e6p-56 -0x1.83fe966af535fp+0 0x1.776p-55
            0x1.36eebb002f56p+2 -0x1.694a6058a8p+0 0x1.1718d7cap+3 -0x1.7339fep+2 0x1.8d32p+4 -0x1.8p+4
        -0x1.025f7af2137fap-2 0x1.7995a4b4641ebp-56 0x1.ea12da904b18cp+0 0x1.22p-54
            0x1.3267f3c265a6p+3 0x1.4185ac30c8p+4 0x1.f504acccp+5 0x1.858846p+7 0x1.4374p+9 0x1.12p+11
        0x1.260dbc9e59af8p-3 -0x1.1d065994b0991p-58 -0x1.f20a65f2fac55p+2 0x1.1d2p-53
            0x1.9d4d2977150ep+4 -0x1.c1137124d6p+6 0x1.267203d8p+9 -0x1.99a634p+11 0x1.293cp+14 -0x1.bcp+16
        -0x1.6e3aae0f406bdp-5 -0x1.e5753daddb926p-61 0x1.4b99d966c5647p+4 -0x1.9ccp-50
            0x1.f76deae0436cp+7 0x1.d25359d4b2p+11 0x1.e8f829f2p+15 0x1.116f78p+20 0x1.3e9p+24 0x1.7ep+28
        0x1.4273c2ccac062p-5 -0x1.e307a790f3f77p-59 -0x1.aca5cf4921642p+4 -0x1.a46p-51
            0x1.44415cd813f8p+8 -0x1.559b11b2aap+12 0x1.96d18e22p+16 -0x1.0261ecp+21 0x1.55e4p+25 -0x1.d2p+29
        -0x1.1510b222a0657p-7 -0x1.e5eab7f12cef6p-61 0x1.d224a3ef9e41fp+6 0x1.9bep-48
            0x1.b533c678a396p+12 0x1.0d3f7fee66p+19 0x1.752a6f5ap+25 0x1.13d5d2p+32 0x1.a8c6p+38 0x1.5p+45
        0x1.0d4afe16db219p-7 0x1.498adcb2a729cp-61 -0x1.ed72e0829ae02p+6 0x1.fdcp-50
            0x1.cecc32ec22fap+12 -0x1.253d8563f8p+19 0x1.a225df2ep+25 -0x1.3e0178p+32 0x1.f7d8p+38 -0x1.9ap+45
        -0x1.6d0a6e0bf2a09p-10 0x1.4ed62cbd31eep-64 0x1.661f6a43a5e12p+9 0x1.0c4p-45
            0x1.f79dcb794f26p+17 0x1.d6e8088a1ap+26 0x1.ef5d308ep+35 0x1.15ea6cp+45 0x1.44d6p+54 0x1.86p+63
        0x1.6b25897c8ced8p-10 0x1.f0b65b458e173p-66 -0x1.69de49e3af2aap+9 -0x1.954p-47
            0x1.fce23484cfd2p+17 -0x1.de503a3c38p+26 0x1.f9c7b526p+35 -0x1.1d3d5p+45 0x1.4f22p+54 -0x1.96p+63
        -0x1.a044a3c880185p-13 -0x1.d949a3dc02de1p-68 0x1.3abf7a5cea91bp+12 0x1.826p-42
            0x1.8349a2550422p+23 0x1.3d91dadc98p+35 0x1.24f3d636p+47 0x1.20427ep+59 0x1.2776p+71 0x1.38p+83
        0x1.9fef6ff0f5be9p-13 -0x1.be919233c3eaap-67 -0x1.3b407aa387bd1p+12 -0x1.da2p-43
            0x1.83e85daafbaep+23 -0x1.3e552b5e3cp+35 0x1.25e42a46p+47 -0x1.216a36p+59 0x1.28e2p+71 -0x1.3ap+83
        -0x1.a01fa98c3c356p-16 -0x1.7d4add4f3562dp-72 0x1.3af76fe4c2fabp+15 0x1.7ccp-40
            0x1.838e76caaf12p+29 0x1.3de68b3256p+44 0x1.255c0526p+59 0x1.20c2a8p+74 0x1.2814p+89 0x1.38p+104
        0x1.a01459fc9f60dp-16 -0x1.30c4f8c4dea26p-70 -0x1.3b088fed67718p+15 0x1.506p-39
            0x1.83a3893550eep+29 -0x1.3e0078db8ap+44 0x1.257bec94p+59 -0x1.20e9eap+74 0x1.2844p+89 -0x1.38p+104
        -0x1.71ded0bf801bdp-19 0x1.3a55d249679f9p-74 0x1.625edfc63db2fp+18 -0x1.da8p-37
            0x1.ea8c150480a8p+35 0x1.c4b30e4bc6p+53 0x1.d5fe468ep+71 0x1.043d22p+90 0x1.2c34p+108 0x1.64p+126
        0x1.71dda3ec36b6cp-19 0x1.0ffb70d477adfp-74 -0x1.626120391944p+18 -0x1.7d6p-38
            0x1.ea8f32fb7f58p+35 -0x1.c4b75ee68ep+53 0x1.d6043fa2p+71 -0x1.044144p+90 0x1.2c3ap+108 -0x1.64p+126
        -0x1.27e50808cbe75p-22 -0x1.1885afab83963p-76 0x1.baf7da5f3795dp+21 0x1.16ap-33
            0x1.7f3e8791fa0ep+42 0x1.ba18befcaap+63 0x1.1ede1476p+85 0x1.8d1a9ap+106 0x1.1e4ep+128 0x1.a8p+149
        0x1.27e4eee649ed1p-22 0x1.d95e15441e031p-76 -0x1.baf825a0c63b2p+21 0x1.204p-35
            0x1.7f3ec8ae05f2p+42 -0x1.ba192fa62ap+63 0x1.1ede75fp+85 -0x1.8d1b44p+106 0x1.1e4ep+128 -0x1.a8p+149
        -0x1.ae64583932495p-26 0x1.a55b7a31a0b4ap-81 0x1.308a7d8eadb7cp+25 -0x1.a96p-31
            0x1.6a4938065bfep+49 0x1.1f51f64698p+74 0x1.005993b2p+99 0x1.e7ee7ep+123 0x1.e3b6p+148 0x1.eep+173
        0x1.ae6454c576597p-26 -0x1.90015bf1b415cp-80 -0x1.308a82715245p+25 0x1.124p-29
            0x1.6a493dd62402p+49 -0x1.1f51fd307ap+74 0x1.00599beap+99 -0x1.e7ee92p+123 0x1.e3b6p+148 -0x1.eep+173
        -0x1.1eed8f18f0438p-29 0x1.acc3d3c978bd8p-84 0x1.c8cfbfaf2b0c8p+28 -0x1.7eap-27
            0x1.97926203e98ap+56 0x1.e4da54ebc6p+84 0x1.447163aep+113 0x1.cf276ap+141 0x1.585cp+170 0x1.08p+199
        0x1.1eed8ee62acf8p-29 0x1.e04a1e70f241cp-85 -0x1.c8cfc050d4f38p+28 0x1.7fp-26
            0x1.979262942676p+56 -0x1.e4da55ed28p+84 0x1.44716494p+113 -0x1.cf276cp+141 0x1.585cp+170 -0x1.08p+199
        -0x1.6124613d00d0bp-33 -0x1.001c54155b96cp-87 0x1.7328cbfacb4e5p+32 0x1.eaep-24
            0x1.0d0fa2e06b3p+64 0x1.04105bec46p+96 0x1.1ac9dd4p+128 0x1.47ffbp+160 0x1.8c4ap+192 0x1.ecp+224
        0x1.612461380cd08p-33 -0x1.17237e0e47fbdp-87 -0x1.7328cc0534b1bp+32 0x1.f64p-24
            0x1.0d0fa2e7f76p+64 -0x1.04105bf736p+96 0x1.1ac9dd5p+128 -0x1.47ffbp+160 0x1.8c4ap+192 -0x1.ecp+224
        -0x1.93974a8c3cf6cp-37 0x1.f04e88bb6e247p-91 0x1.44c3b27faa6bcp+36 0x1.198p-21
            0x1.9bfff16cfee6p+71 0x1.5c71eb305cp+107 0x1.4b87e88cp+143 0x1.50778ep+179 0x1.63b4p+215 0x1.82p+251
        0x1.93974a8bd29cfp-37 -0x1.09d47384560edp-91 -0x1.44c3b28055944p+36 0x1.198p-21
            0x1.9bfff16dd808p+71 -0x1.5c71eb317p+107 0x1.4b87e88cp+143 -0x1.50778ep+179 0x1.63b4p+215 -0x1.82p+251
        -0x1.ae7f3e733f622p-41 0x1.81b8fc4e9b9acp-95 0x1.30777757fa84ap+40 -0x1.866p-14
            0x1.6a1bf33124eep+79 0x1.1f1c1dba92p+119 0x1.0019876ap+159 0x1.e7562p+198 0x1.e3p+238 0x1.ecp+278
        0x1.ae7f3e7337a1dp-41 -0x1.ef83d0b08e728p-95 -0x1.30777758057b6p+40 -0x1.866p-14
            0x1.6a1bf33131f8p+79 -0x1.1f1c1dbaa2p+119 0x1.0019876ap+159 -0x1.e7562p+198 0x1.e3p+238 -0x1.ecp+278
        -0x1.ae7f3e733bc16p-45 0x1.2e72e4d113627p-100 0x1.30777757ffa65p+44 -0x1.986p-10
            0x1.6a1bf3312b08p+87 0x1.1f1c1dba9ap+131 0x1.0019876ap+175 0x1.e7562p+218 0x1.e3p+262 0x1.ecp+306
        0x1.ae7f3e733b428p-45 0x1.25fc9dc8f8bbep-99 -0x1.307777580059bp+44 -0x1.986p-10
            0x1.6a1bf3312bdep+87 -0x1.1f1c1dba9ap+131 0x1.0019876ap+175 -0x1.e7562p+218 0x1.e3p+262 -0x1.ecp+306
        """),
}


def near_zero(a: Term) -> tuple[Term, Term]:
    """For a > 1/2: is -a next to a zero, and if so, log|Gamma(-a)|."""
    f, t = a.fmt, ZEROS[a.dt]
    n = a.rint()
    d = a - n
    inside = a < t.last + 0.5
    row = where(inside, n + n, 0.0).cast(f.signed) + where(d > 0.0, -3, a.const(-4, f.signed))
    row = where(row < 0, 0, row)
    column = lambda values: row.pick(values, a.dt)
    slope = column(t.slope)
    zero = column(t.zero)
    h, h_low = two_sum(d - zero, -column(t.zero_low))
    value, error = two_product(h, slope)
    higher = horner(h, [column(c) for c in t.higher])
    rest = fma(h * h, higher, fma(h, column(t.slope_low), fma(h_low, slope, error)))
    return abs(h) < abs(zero) * NEAR, value + rest

