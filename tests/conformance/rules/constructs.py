"""Language constructs (002)."""
from ..table import chapter

CC, CV, CI, CR, REFUSED = ("conformance/test_constructs.py::", "conformance/test_values.py::", "conformance/test_indexing.py::", "conformance/test_regions.py::",
                           "conformance/test_refusals.py::test_refused")
REGION = "language/test_region.py::"

VALUES = chapter(
    "002 sections 1-4: definitions, parameters, domains, tensors",
    ("C1.1", "a kernel is one computation; a helper is inlined, returns scalars, tensors and products, and has the effects of its call site",
     CC + "test_helpers_have_the_effects_of_their_call_site", "language/test_helpers.py::test_products_come_back_from_helpers,test_helpers_may_be_passed_on_and_take_views"),
    ("C1.2", "run-time captures are parameters; constants may be captured", "language/test_helpers.py::test_captured_constants_behave_like_literals",
     "errors/test_rejections.py::test_rejected[def g():;     return s; t = g()]"),
    ("C1.3", "no recursion, no kernel in a kernel", "errors/test_rejections.py::test_rejected[t = recursive(s)]", "errors/test_rejections.py::test_rejected[t = mutual(s)]",
     "errors/test_rejections.py::test_rejected[inner(x)]"),
    ("C1.4", "arguments bind as Python's, named and keyword-only too, and are evaluated in source order",
     "language/test_helpers.py::test_arguments_follow_the_python_signature,test_arguments_are_evaluated_in_source_order", "errors/test_rejections.py::test_rejected[t = two(s, 2.0)]"),
    ("C1.5", "coordinates keep their source through helpers, tuples and records", CC + "test_coordinates_pass_through_helpers_and_records"),
    ("C2.1", "In is read-only, Out holds nothing at first, InOut keeps its contents", REFUSED, "errors/test_hints.py::test_outs_may_be_read_once_something_may_have_written_them",
     "language/test_cases.py::test_17_reads_are_snapshots"),
    ("C2.2", "dtypes annotate run-time scalars, Constexpr picks code", "host/test_calls.py::test_scalars_arrive,test_constexprs_specialise", "programs/test_control.py::test_constexpr_variants"),
    ("C2.3", "annotations that are none are refused where they stand", REFUSED, "errors/test_hints.py::test_a_wrong_annotation_is_shown_where_it_stands"),
    ("C3.1", "domains are half-open with a positive step; b > e is empty", "programs/test_shapes.py::test_domains_with_a_step", REFUSED,
     "kir/test_front_end.py::test_a_domain_that_ends_before_it_begins_is_empty", "language/test_values.py::test_empty_and_dynamic_domains", "host/test_checks.py::test_domains_and_indices"),
    ("C3.2", "reverse traversal by ordinals", "programs/test_shapes.py::test_reversal_by_coordinates"),
    ("C3.3", "subregions are contiguous parts with source coordinates, without clamping", "language/test_values.py::test_subregions_keep_absolute_coordinates",
     "host/test_checks.py::test_regions_and_shapes"),
    ("C3.4", "iteration and indices yield source coordinates", "language/test_values.py::test_subregions_keep_absolute_coordinates", CI + "test_reads"),
    ("C4.1", "scalars and extents of one broadcast from the right", "language/test_values.py::test_shape_operations", "errors/test_rejections.py::test_rejected[y[:] = x[:] + z[:]]",
     "errors/test_rejections.py::test_rejected[t = I.zeros((3,), I.f32) + I.zeros((4,), I.f32)]"),
    ("C4.2", "every unary function on scalars and tensors of every float dtype", "numerics/test_math_accuracy.py::test_f32,test_f64,test_narrow_floats_round_the_f32_function",
     "targets/test_elementwise.py::test_kind"),
    ("C4.3", "fdiv is /, and exp2, tanh and fdiv take their modes", "conformance/test_numerics.py::test_modes_stay_with_their_operation"),
    ("C4.4", "reshape keeps row-major order and count", "language/test_reshape.py::test_an_inferred_extent_keeps_the_count_it_came_from,test_counts_that_nothing_relates_are_refused", REFUSED),
    ("C4.5", "a permutation names each axis once; without one all axes are reversed", "language/test_values.py::test_shape_operations", "programs/test_shapes.py::test_transpose", REFUSED),
    ("C4.6", "tensors and views have .shape; scalars, products and domains have none", REFUSED, "errors/test_rejections.py::test_rejected[t = s.shape]",
     "errors/test_rejections.py::test_rejected[d = I.domain(0, 5); t = d.shape]"),
    ("C4.7", "full and zeros make values of any shape, () makes rank zero", CV + "test_full_takes_shapes_and_extents", CC + "test_rank_zero_and_scalars"),
    ("C4.8", "join stacks two tensors of one dtype and shape on a new last axis", "language/test_values.py::test_shape_operations", REFUSED),
    ("C4.9", "tuples by position, records by field, both fixed at compile time", CV + "test_products_nest_and_are_values_everywhere", REFUSED),
)

CONTROL = chapter(
    "002 sections 5-6: points, loops, branches",
    ("C5.1", "parallel visits each point once, in no order, without carries", CC + "test_each_point_runs_once", "programs/test_threads.py::test_shared_points",
     "errors/test_rejections.py::test_rejected[acc = I.cast(0, I.f32); for i in I.parallel(I.domain(0, 3)]"),
    ("C5.2", "conflicts of points are refused where they can be proved", "errors/test_rendering.py::test_a_race_shows_both_lines"),
    ("C6.1", "if, for and while are ordered; carries keep dtype, rank and shape", CC + "test_control_is_pythons", "language/test_control_fuzz.py::test_random_program",
     "errors/test_rejections.py::test_rejected[acc = I.zeros((1,), I.f32); for i in I.domain(0, 3):;     ac]"),
    ("C6.2", "break, continue and else as in Python", "language/test_control.py::test_nested_loops_with_break_and_continue,test_for_else_and_two_exits,"
     "test_break_keeps_the_carry_of_that_iteration"),
    ("C6.3", "a tensor is no condition", "errors/test_rejections.py::test_rejected[if x[:] > 0.0:;     y[0] = 1.0]"),
)

STRUCTURED = chapter(
    "002 sections 7-14: structured operations",
    ("C7.1", "generic reduce over scalars, tensors, tuples and records", "language/test_values.py::test_reductions", "numerics/test_cases.py::test_generic_reduction_of_two_components",
     "programs/test_combines.py::test_products_of_matrices,test_softmax_by_one_reduction", "kir/test_front_end.py::test_generic_reduction"),
    ("C7.2", "combine keeps the schema and is pure", "errors/test_rejections.py::test_rejected[t = I.reduce(x[:], axis=0, identity=I.cast(0, I.f32), combin]", "language/test_atomics.py::test_combines_do_not_update"),
    ("C7.3", "builtins take one axis or several, negative ones too", "programs/test_reductions.py::test_several_axes", CC + "test_shapes_count_from_the_end",
     "errors/test_rejections.py::test_rejected[t = I.reduce.sum(I.zeros((2, 3), I.f32), axis=(0, 0))]", REFUSED),
    ("C7.4", "arg_reduce gives (values, indices), counted inside the tensor, scalars when no axis is left", "language/test_cases.py::test_12_indices_count_inside_the_tensor",
     "numerics/test_cases.py::test_arg_reduce_along_an_axis"),
    ("C8.1", "scan by any associative combine, in order, in both directions", "programs/test_scans.py::test_scan_of_affine_maps_solves_a_recurrence,test_welford,test_complex_product,test_prefix",
     "programs/test_combines.py::test_affine_maps_solve_a_recurrence"),
    ("C8.2", "cumsum and cummax keep the shape; cumsum widens", "language/test_cases.py::test_13_cumsum,test_13_cummax", CV + "test_sums_widen_and_extremes_keep_their_dtype", REFUSED),
    ("C9.1", "region fold: summarize of slices, combine in order, identity for nothing", REGION + "test_segments_and_groups_fold_as_section_12_says,test_order_of_slices,test_running_mean_and_variance"),
    ("C9.2", "source components have one extent and the same cuts; they may repeat, be masks or descend", REGION + "test_masks_repeated_rows_and_descending_coordinates,test_refused"),
    ("C9.3", "operands are whole: tensors, records, scalars and Constexprs", CR + "test_operands_are_runtime_values_and_constexprs", REGION + "test_flash_attention"),
    ("C9.4", "summaries of mixed rank", CR + "test_summaries_of_mixed_rank", REGION + "test_flash_attention"),
    ("C9.5", "helpers may use every pure operation, region operations too", REGION + "test_nested_region_operations,test_flash_attention,test_gated_delta_rule"),
    ("C9.6", "helpers have no effects, and what they return keeps its schema", REGION + "test_refused", REFUSED),
    ("C9.7", "no program shows where it was cut", CR + "test_parts_points_and_branches", REGION + "test_causal_linear_attention,test_mamba_state_space,test_gated_delta_rule"),
    ("C9.8", "region scan: incoming states, emitted slices in order, the final state", CR + "test_states_differ_from_transitions", REGION + "test_several_emitted_tensors,test_causal_linear_attention"),
    ("C10.1", "dot, matvec, vecmat, matmul, outer: shapes, batches that broadcast, transposes", "language/test_values.py::test_contractions,test_generic_contract_and_batch_broadcast",
     "programs/test_products.py::test_vector_products,test_batched_gemm_broadcasts_its_batches,test_transposed_gemm_has_the_bits_of_the_plain_one"),
    ("C10.2", "K matches and does not broadcast; ranks as stated", "language/test_cases.py::test_14_axes_of_products", REFUSED),
    ("C10.3", "one operand dtype, an explicit accumulator, nothing gives zero", "errors/test_rejections.py::test_rejected[t = I.dot(x[:], k[:], acc_dtype=I.f32)]", "language/test_cases.py::test_11_a_product_over_nothing_is_zero",
     "numerics/test_order.py::test_empty_contractions"),
    ("C10.4", "contract pairs axes and batches; result axes are lhs then rhs", "programs/test_products.py::test_contract_with_batch_and_several_axes", "language/test_cases.py::test_14_axes_of_products",
     "numerics/test_order.py::test_result_axes_and_batches,test_several_reduced_axes_run_row_major_as_listed", REFUSED),
    ("C11.1", "scaled_matmul and scaled_contract are one closed schema", "language/test_scaled.py::test_block_scaled_gemm,test_refused,test_a_batch_by_ordinary_control_is_exact_on_exact_data"),
    ("C11.2", "quantize and quantized_dot", "language/test_quantized.py::test_quantize,test_dot,test_dot_with_extreme_bytes,test_q4_k_projection,test_refused"),
    ("C12.1", "sparse_matmul and sparse_contract keep the rules of contract along their free axes", "language/test_sparse.py::test_batch_and_another_compression_axis,test_matrix_times_vector,"
     "test_batched_vector_times_matrix,test_bits_are_those_of_the_dense_contraction_over_finite_values"),
    ("C12.2", "formats are closed typed values", "language/test_sparse.py::test_formats_are_values_outside_of_kernels,test_refused"),
    ("C13.1", "histogram is a pure value", "language/test_histogram.py::test_counts,test_one_for_each_point,test_in_a_loop_and_as_an_operand,test_inside_an_ordered_loop"),
    ("C14.1", "ragged groups are offsets, subregions and an optional mapping", "language/test_values.py::test_ragged_groups", "programs/test_sparse_rows.py::test_jagged_mean,test_grouped_gemm",
     "programs/test_lengths.py::test_softmax_of_ragged_groups", REFUSED),
)

MEMORY = chapter(
    "002 sections 15-19: access, atomics, random numbers, parts",
    ("C15.1", "indexing and gather share relations; coordinates come from constants, domains or data", CI + "test_reads"),
    ("C15.2", "stores, unique stores and reductions through the same relations", CI + "test_stores_and_updates"),
    ("C16.1", "atomics in both forms, with every legal order", "conformance/test_atomic_orders.py::test_orders", "language/test_atomics.py::test_forms"),
    ("C17.1", "random bits and uniforms; other distributions are helpers", "language/test_random.py::test_seeds_and_counters_broadcast,test_monte_carlo_barrier_option"),
    ("C18.1", "parts that a program shows are its own: domains, subregions and loops", REGION + "test_mamba_state_space"),
    ("C19.1", "names outside the closed list are refused, with the language's word", "errors/test_rejections.py::test_rejected[t = I.nothing(s)]",
     "conformance/test_assumptions.py::test_the_closed_list_of_names"),
)
CHAPTERS = (VALUES, CONTROL, STRUCTURED, MEMORY)
