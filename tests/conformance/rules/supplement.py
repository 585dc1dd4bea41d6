"""SUPPLEMENT sections 1 to 9, 11 and 12, and the policies of 003 and 004."""
from ..table import chapter

CC, CV, CI, CM, REFUSED = ("conformance/test_constructs.py::", "conformance/test_values.py::", "conformance/test_indexing.py::", "conformance/test_memory.py::",
                           "conformance/test_refusals.py::test_refused")

NAMES = chapter(
    "SUPPLEMENT 1-3: names, literals, shapes",
    ("S1.1", "an operation outside a kernel names itself", "errors/test_rendering.py::test_operations_outside_a_kernel_name_themselves", "host/test_pointwise_njit.py::test_outside_numba_and_kernels_they_refuse"),
    ("S2.1", "the names of I are the closed list", "conformance/test_assumptions.py::test_the_closed_list_of_names", "test_docs.py::test_every_name_of_the_language_is_described"),
    ("S2.2", "constraints(alias=, noalias=, strides=)", "host/test_binding.py::test_strides_constraints,test_alias_groups_share_their_allocation,test_noalias_is_by_byte_range", "host/test_stub.py::test_constraints", REFUSED),
    ("S2.3", "shapes are names and non-negative integers; equal names are equal extents", "host/test_binding.py::test_equal_names_need_equal_extents,test_exact_extents_and_rank_zero", REFUSED),
    ("S2.4", "valid=False writes nothing and forms no address", CM + "test_unwritten_elements_stay", "language/test_scatter.py::test_invalid_writes_do_nothing"),
    ("S2.5", "min and prod, ceil, fma, power, pow, clamp, relu, logical_not, floor_divide, remainder", "language/test_cases.py::test_11_empty_reductions", "programs/test_pointwise.py::test_clamp_and_sign,test_relu",
     "numerics/test_math_exact.py::test_integer_power,test_float_floor_division", "numerics/test_math_special.py::test_pow_is_c99"),
    ("S2.6", "range and enumerate walk domains", CC + "test_control_is_pythons", "language/test_control.py::test_parallel_product_and_enumerate", REFUSED),
    ("S2.7", "pointwise names serve as combine=", "programs/test_scans.py::test_builtin_combines", "language/test_scatter.py::test_integers"),
    ("S3.1", "captured constants are literals in their place", CV + "test_captured_constants_are_literals", "language/test_helpers.py::test_captured_constants_behave_like_literals"),
    ("S3.2", "select gives two literal branches no dtype", REFUSED),
    ("S3.3", "a float literal bound to a name is f64; the error says what to write", "language/test_cases.py::test_07_a_float_literal_bound_to_a_name_is_f64", "language/test_values.py::test_a_named_float_is_f64"),
    ("S3.4", "an integer bound to a name stays known until control makes it a run-time value", "language/test_values.py::test_named_integers_stay_known"),
    ("S3.5", "weak integers meet index and i64 as they are, others by a cast", "language/test_cases.py::test_07_weak_integers,test_07_a_weak_integer_meets_i32_only_through_a_cast",
     "language/test_values.py::test_a_weak_integer_meets_index_and_i64", "language/test_control.py::test_while_with_a_weak_integer_carry"),
    ("S3.6", "literals in products, identities, states, carries and merges take the schema they must match", "language/test_merges.py::test_literals_of_one_merge_take_the_dtype_of_its_values,"
     "test_a_literal_that_does_not_fit_the_dtype_of_the_merge_is_refused", "language/test_control.py::test_literal_carries_take_the_dtype_of_their_updates",
     "conformance/test_regions.py::test_states_differ_from_transitions"),
    ("S3.7", "any integer dtype indexes and bounds; loop variables are index, which needs casts", CI + "test_reads", "language/test_values.py::test_index_is_not_i64"),
    ("S3.8", "a domain stands for an extent", "language/test_values.py::test_domains_as_extents_and_infer", CV + "test_full_takes_shapes_and_extents"),
    ("S3.9", "dot is rank zero, a full reduction a scalar", CC + "test_rank_zero_and_scalars"),
    ("S3.10", "0 broadcasts with 1, not with another extent; equal names or values make extents equal", "language/test_values.py::test_equal_extents_by_the_same_value", "conformance/test_shapes.py::test_zero_broadcasts_with_one_only"),
    ("S3.11", "reshape infers one extent; a full slice needs a colon for each axis; view[()] is rank zero", REFUSED, "language/test_reshape.py::test_an_inferred_extent_keeps_the_count_it_came_from"),
    ("S3.12", "stores go to Out, InOut and buffers; a read is a snapshot", "errors/test_rejections.py::test_rejected[x[0] = 1.0]", "errors/test_rejections.py::test_rejected[t = x[:]; t[0] = 1.0]",
     "language/test_cases.py::test_17_reads_are_snapshots"),
)

ORDER = chapter(
    "SUPPLEMENT 4-6: indexing, control, structured operations",
    ("S4.1", "domains, subregions and slices give an axis each, in order; tensors pair", CI + "test_reads", "programs/test_shapes.py::test_tensor_indices_pair_pointwise_and_broadcast"),
    ("S4.2", "the axes of tensors stand at the first of them", CI + "test_reads,test_stores_and_updates"),
    ("S4.3", "a store aligns by position and never transposes", CI + "test_stores_and_updates", "language/test_values.py::test_transposing_coordinate_read"),
    ("S4.4", "a tensor of a subregion counts from zero, its indices do not", "language/test_cases.py::test_12_indices_count_inside_the_tensor", "language/test_values.py::test_subregions_keep_absolute_coordinates"),
    ("S4.5", "gather guards: fill where invalid, and no access", "language/test_values.py::test_gather_guards_the_access", "programs/test_shapes.py::test_gather_touches_nothing_where_invalid"),
    ("S5.1", "continue skips a point, break is refused; products of domains", CC + "test_each_point_runs_once", "errors/test_rejections.py::test_rejected[for i in I.parallel(I.domain(0, 3)):;     if x[i] > 0.0:;   ]"),
    ("S5.2", "a name must exist on every path that reaches its use", "errors/test_rejections.py::test_rejected[if b:;     t = s; y[0] = t]"),
    ("S5.3", "helpers return early with one schema", "language/test_control.py::test_early_return_in_a_helper", "programs/test_control.py::test_return_from_inside_a_loop"),
    ("S6.1", "axes are compile-time integers or non-empty tuples, negatives too; no keepdim", "programs/test_reductions.py::test_several_axes", REFUSED,
     "errors/test_rejections.py::test_rejected[t = I.reduce.sum(I.zeros((2, 3), I.f32), axis=())]"),
    ("S6.2", "mask and select broadcast and suppress nothing; valid and fill do not enlarge", "programs/test_pointwise.py::test_select_and_mask", "host/test_checks.py::test_what_a_guard_skips_is_not_checked", REFUSED),
    ("S6.3", "scaled carriers and scales are u8, e4m3 also f8e4m3fn", "language/test_scaled.py::test_every_element_with_every_scale_rounds_once,test_refused"),
    ("S6.4", "what is unsupported says so with construct and line, never with a traceback from inside", "host/test_messages.py::test_a_defect_of_the_compiler_shows_nothing_of_its_inside",
     "host/test_calls.py::test_an_accident_inside_the_compiler_is_an_unsupported_error", "errors/test_rejections.py::test_names_of_the_language_that_are_not_built_are_refused_by_name"),
)

FORMATS = chapter(
    "SUPPLEMENT 7: quantized records",
    ("S7.1", "records, fields and unpacking of q4_k and q8_k", "language/test_quantized.py::test_dot,test_dot_with_extreme_bytes"),
    ("S7.2", "the dot's roundings, in record order", "language/test_quantized.py::test_dot,test_q4_k_projection"),
    ("S7.3", "quantize: extreme, inverse, step, rounding, sums; zeros; no records", "language/test_quantized.py::test_quantize"),
)

HOST = chapter(
    "SUPPLEMENT 8-9: the host and Numba",
    ("S8.1", "calls by position and keyword, outputs too", "host/test_calls.py::test_positional_keyword_and_repeated_calls"),
    ("S8.2", "run allocates zeros and returns none, one or several; extents= names the rest", "host/test_calls.py::test_run_allocates_and_returns", "host/test_binding.py::test_run_allocates_zeros,test_extents"),
    ("S8.3", "Constexprs specialise and are part of the key", "host/test_calls.py::test_constexprs_specialise", "host/test_binding.py::test_wrong_constexprs"),
    ("S8.4", "compile, prepare, launch, result, interpret, inspect", "host/test_calls.py::test_artifact,test_prepare,test_interpret_gives_the_same_bits,test_inspect"),
    ("S8.5", "generate needs no device and no arrays; saved programs load", "host/test_generated.py::test_contents,test_saving_and_loading", "targets/test_cuda.py::test_shapes_stay_symbolic"),
    ("S8.6", "arrays by every protocol, zero-copy, any strides; bf16 and f8 by ml_dtypes", "host/test_arrays.py::test_memory_is_shared,test_buffers,test_dlpack_with_strides_stays_writable,test_dtypes_of_carriers",
     "host/test_calls.py::test_small_floats", CM + "test_reads_take_any_strides"),
    ("S8.7", "a written view that overlaps itself is legal for updates only", "host/test_binding.py::test_a_written_view_that_overlaps_itself", CM + "test_updates_may_repeat_addresses"),
    ("S8.8", "overlapping views have the language's answer", "host/test_overlap.py::test_random_overlaps,test_shifted_windows,test_the_same_memory_twice,test_views_of_different_dtypes_over_one_block"),
    ("S8.9", "scalars that their dtype cannot hold are refused", "host/test_scalars.py::test_integers_are_held_exactly_or_refused,test_too_large_floats_are_refused,test_bool_takes_bools_only"),
    ("S8.10", "a broken call names parameter, expectation and what came; nothing is written", "host/test_messages.py::test_calls", "host/test_calls.py::test_a_refused_call_writes_nothing", "host/test_binding.py::test_wrong_arrays"),
    ("S8.11", "policy and options are part of every key; helpers take their caller's", "host/test_fingerprint.py::test_policy_options_variant_and_target_count", "policies/test_range_preserving.py::test_helpers_take_the_policy_of_their_caller"),
    ("S8.12", "checks=True finds every obligation and writes nothing", "host/test_checks.py::test_division,test_other_operands,test_domains_and_indices,test_places,test_formats,test_every_way_of_calling"),
    ("S8.13", "kernels and errors pickle", "host/test_calls.py::test_pickling", "errors/test_rendering.py::test_errors_pickle_with_their_source"),
    ("S9.1", "kernels are called from njit code", "host/test_njit.py::test_calls_with_arrays_and_scalars,test_same_bits_as_from_python,test_kernels_as_arguments"),
    ("S9.2", "kernels call njit functions of scalars", "language/test_helpers.py::test_an_njit_function_is_a_call", "targets/test_cpu.py::test_njit_function_is_linked", "targets/test_spirv.py::test_njit_helpers_are_refused_by_name",
     "errors/test_rejections.py::test_rejected[t = scalar_njit(x[:])]"),
    ("S9.3", "pointwise functions in njit have a kernel's bits", "host/test_pointwise_njit.py::test_unary_operations_have_a_kernel_s_bits,test_operations_of_several_operands"),
    ("S9.4", "no source file is needed: prompt, python -c, exec, redefinition", "host/test_processes.py::test_python_c_and_exec,test_the_plain_prompt_and_redefinition", "language/test_helpers.py::test_no_source_file_is_needed,test_redefinition_of_the_same_name"),
)

POLICIES = chapter(
    "SUPPLEMENT 11, with 003 and 004: policies",
    ("P1", "every operation is planned once, in an ordered registry of immutable plans", "language/test_policy.py::test_registry_is_ordered_and_unique,test_plans_are_immutable_and_hashable", "policies/test_registry.py::test_every_policy_is_an_ordered_table,test_plans_are_consistent"),
    ("P2", "typing and compiled code follow the plans, for every dtype and policy", "policies/test_walk.py::test_type_inference_gives_what_plans_say,test_compiled_plans_give_the_bits_of_the_reference"),
    ("P3", "004's facade: signatures, enums, defaults, options, errors", "policies/test_checked_facade.py::test_inspect_a_mixed_add_plan,test_enumerate_policy_coverage,test_options_refuse,test_specifications_check_themselves,test_registry_order"),
    ("P4", "004: roles, scalars, promotion and overload selection", "policies/test_checked_facade.py::test_select_tensor_and_scalar_overloads_separately,test_treat_bool_as_a_weak_floating_scalar,test_integral_is_by_type,test_promotion_family,test_unary_families"),
    ("P5", "004: structured families and accumulators; plans without execution are a pinned list", "policies/test_checked_facade.py::test_structured_families,test_widen_a_float32_reduction_accumulator,test_operations_that_have_a_plan_and_no_execution"),
    ("P6", "checked: overflow raises at the call, on every way of calling; what does not run does not raise", "policies/test_checked_kernels.py::test_integers_are_exact_or_raise,test_overflow_through_every_form_of_call,test_what_does_not_run_does_not_raise,test_an_unused_result_still_raises"),
    ("P7", "checked: accumulation is exact for integers, rounded product by product for floats, no FMA", "policies/test_checked_kernels.py::test_integer_sums_are_exact_in_between,test_float_accumulation_rounds_where_the_plan_says", "language/test_cases.py::test_01_checked_never_fuses"),
    ("P8", "checked: weak scalars, comparisons, casts, strict index arithmetic", "policies/test_checked_kernels.py::test_weak_scalars_select_the_branch,test_casts_to_i32_raise_out_of_range,test_index_arithmetic_is_strict,test_what_has_no_plan_is_refused"),
    ("P9", "003: promotion that keeps ranges, wrapping stores", "policies/test_range_preserving.py::test_promotion_preserves_ranges_and_stores_wrap", "policies/test_integer_expressions.py::test_wrapping_at_every_node"),
    ("P10", "003: division, floor division and remainder, power", "policies/test_range_preserving.py::test_true_division_is_float_and_floor_division_of_floats_is_pythons,test_integer_power_keeps_the_dtype_of_the_base"),
    ("P11", "003: weak float literals, integer literals by value", "policies/test_range_preserving.py::test_float_literals_take_the_precision_they_meet,test_a_name_of_small_literals_stays_known,test_weak_expressions_are_computed_in_the_dtype_they_meet"),
    ("P12", "003: one dtype for a local; conditions are numbers and numbers conditions", "policies/test_range_preserving.py::test_a_local_has_one_dtype_over_all_assignments,test_numbers_are_conditions_and_conditions_numbers"),
    ("P13", "003: comparisons by value, shifts of the left dtype, guards honoured, nothing folded", "policies/test_range_preserving.py::test_comparisons_are_of_values_and_shifts_keep_the_left_dtype,test_guards_are_honoured_and_nothing_is_folded"),
    ("P14", "adapted: narrow floats among themselves, reductions widen, index stays", "policies/test_range_preserving.py::test_narrow_floats_stay_among_themselves,test_reductions_and_contractions_promote,test_index_arithmetic_stays_index"),
)

BITS = chapter(
    "SUPPLEMENT 12: the bits",
    ("B.R", "R: 32 lanes, chunks of 4096, halves; float sum, product and every generic combine", "numerics/test_order.py::test_sum,test_sum_of_several_chunks,test_product,test_generic_reduction",
     "programs/test_fixed_order.py::test_reductions_round_in_the_fixed_tree,test_rows_and_columns_have_the_bits_of_one_vector", "programs/test_combines.py::test_chunks,test_leaves_of_leaves"),
    ("B.axes", "several axes nest, the last first; a combine that is a primitive is the builtin", "programs/test_reductions.py::test_several_axes", "programs/test_scans.py::test_builtin_combines"),
    ("B.free", "integers, any, all, bitwise and extremes have no order", "numerics/test_integers.py::test_reductions_are_exact", "numerics/test_order.py::test_integer_scans", "numerics/test_extrema_order.py::test_every_extreme"),
    ("B.S", "S: steps of 1, 2, 4, 8, 16 in blocks of 32, carries, chunks; exclusive, reverse", "numerics/test_order.py::test_scan,test_a_scan_keeps_a_negative_zero", "programs/test_fixed_order.py::test_scans_round_in_the_fixed_order"),
    ("B.C", "C: ascending chains in blocks of 1024; other contractions are R with FMA leaves", "numerics/test_order.py::test_chain,test_chain_of_several_blocks,test_tree,test_tree_of_several_chunks",
     "programs/test_fixed_order.py::test_products_round_in_the_fixed_order", "language/test_values.py::test_contract_forms"),
    ("B.region", "segments of 64, groups of 16, folded left; states by the fold of what came before", "language/test_region.py::test_segments_and_groups_fold_as_section_12_says"),
    ("B.same", "one answer for any threads, layout and tiles", "programs/test_threads.py::test_shared_work,test_shared_points", "language/test_cases.py::test_22_tails_and_layouts", "programs/test_fixed_order.py::test_rows_and_columns_have_the_bits_of_one_vector"),
)
CHAPTERS = (NAMES, ORDER, FORMATS, HOST, POLICIES, BITS)
