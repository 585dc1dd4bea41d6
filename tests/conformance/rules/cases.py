"""The language cases."""
from ..table import chapter

C = "language/test_cases.py::"
CASES = chapter(
    "Language cases",
    ("case 1.1", "a name ends fusion, one expression fuses", C + "test_01_fma_scope"),
    ("case 1.2", "under checked neither fuses", C + "test_01_checked_never_fuses"),
    ("case 2", "every NaN pattern narrows to a NaN", C + "test_02_nan_narrows_to_nan"),
    ("case 3", "edges of e4m3fn, e5m2 and the saturating cast", C + "test_03_edges_of_f8"),
    ("case 4.1", "floats in range truncate", C + "test_04_float_to_integer_truncates", "host/test_checks.py::test_float_to_integer"),
    ("case 4.2", "out of range and NaN are reported with coordinates", "host/test_checks.py::test_float_to_integer"),
    ("case 5.1", "division floors, as literals, scalars and tensors", C + "test_05_division_floors"),
    ("case 5.2", "a zero divisor and -128 // -1 harm nothing unchecked", C + "test_05_division_by_zero_and_overflow_are_harmless_when_unchecked"),
    ("case 5.3", "checks report exactly these", "host/test_checks.py::test_division,test_remainder"),
    ("case 6", "a ternary guards, a select does not", C + "test_06_guarded_division", "host/test_checks.py::test_what_a_guard_skips_is_not_checked"),
    ("case 7.1", "literals that fit and that do not", C + "test_07_literals_that_fit,test_07_literals_that_do_not_fit"),
    ("case 7.2", "0.0 bound to a name is f64, the error says how to write it", C + "test_07_a_float_literal_bound_to_a_name_is_f64"),
    ("case 8", "maximum, minimum and their _num forms with NaN and zeros, in lengths 1, 7, 32, 33", C + "test_08_extrema,test_08_extrema_of_arrays_of_zeros"),
    ("case 9", "folds that floats forbid", C + "test_09_forbidden_folds"),
    ("case 10", "sums and prefixes widen, maxima do not", C + "test_10_sums_widen"),
    ("case 11.1", "empty reductions give their identities, of every shape", C + "test_11_empty_reductions"),
    ("case 11.2", "a product over nothing is zeros; nothing is quantized to nothing", C + "test_11_a_product_over_nothing_is_zero",
     "language/test_quantized.py::test_quantize"),
    ("case 12", "arg_reduce: NaN, ties, zeros, indices inside the tensor", C + "test_12_arg_max,test_12_indices_count_inside_the_tensor"),
    ("case 13", "cumsum and cummax, exclusive and reverse", C + "test_13_cumsum,test_13_cummax"),
    ("case 14", "axes of contract and matmul, K does not broadcast", C + "test_14_axes_of_products"),
    ("case 15", "products in a wider accumulator", C + "test_15_accumulators"),
    ("case 16", "folds do not show their slices", C + "test_16_folds_do_not_show_their_slices"),
    ("case 17", "overlap, ordered loops, transpose in place, snapshots", C + "test_17_overlap,test_17_reads_are_snapshots"),
    ("case 18.1", "a buffer's read is a snapshot; a partly initialised buffer compiles", C + "test_18_buffers"),
    ("case 18.2", "a read of a fresh buffer is reported in the iteration that makes it", "host/test_checks.py::test_reads_of_what_nothing_wrote"),
    ("case 19", "enums: declarations, no arithmetic, specialisation by type", C + "test_19_enum_declarations,test_19_enums_have_no_arithmetic,"
     "test_19_enum_types_specialise_separately"),
    ("case 20.1", "approximate and flushed values at the edges", C + "test_20_approximate_edges"),
    ("case 20.2", "misuse of the modes is refused", C + "test_20_approximate_misuse"),
    ("case 20.3", "the plain and the approximate operation never merge", "conformance/test_numerics.py::test_modes_stay_with_their_operation,"
     "test_modes_are_attributes_of_the_operation"),
    ("case 21", "Philox words; an atomic reads nothing besides; a load does not release", C + "test_21_random_bits,test_21_atomics"),
    ("case 22", "reversed, transposed and broadcast views give the bits of a copy; tails touch nothing outside",
     C + "test_22_tails_and_layouts,test_22_a_broadcast_view_gives_the_bits_of_its_copy"),
)
