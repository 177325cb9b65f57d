# ruff: noqa: E501 - a table of long test names, one line each
"""What the official stores are known to do differently, found by running the kit over them.

The numbers in parentheses are issues of langchain-ai/langgraph. Tables named `UNSTABLE` hold tests
whose wrong result depends on chance; the others are strict: a test that passes again turns the run
red, and then its line goes. Measured with langgraph 1.2.24, langgraph-checkpoint 4.3.2, -sqlite
3.1.2 and -postgres 3.2.0 (pgvector 0.8.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

IN_MEMORY_STORE: Final[Mapping[str, str]] = {
    "test_a1_mutating_a_returned_item_changes_nothing": "returns and keeps nested values without copying (#8835)",
    "test_a1_mutating_the_given_value_changes_nothing": "returns and keeps nested values without copying (#8835)",
    "test_a2_non_json_value_is_refused": "keeps any Python object as it is",
    "test_a2_refusal_names_the_path": "does not say where in the value the trouble is",
    "test_a2_tuples_come_back_as_lists": "keeps any Python object as it is",
    "test_a3_non_string_key_is_the_same_in_a_batch": "batch does not apply str() to the key",
    "test_a3_unstorable_key_is_refused": "accepts any string",
    "test_b1_refused_value_leaves_the_batch_unwritten": "writes any value",
    "test_f11_bool_is_no_number": "compares bools with numbers",
    "test_f13_ranges_of_large_integers_are_exact": "rounds large integers to floats",
    "test_f16_unknown_operator_is_refused_without_items": "checks an operator only against items",
    "test_f7_range_ignores_values_of_another_type": "raises for a value that is no number (#7880, #8365)",
    "test_f7_range_with_an_operand_that_has_no_order_matches_nothing": "raises for an operand that is no number (#7880, #8365)",
    "test_f8_range_on_iso_dates_is_string_order": "converts every operand of a range to a float",
    "test_f_unknown_top_level_operator_is_refused": "takes an unknown top-level operator for a field name (#8829)",
    "test_l1_negative_number_is_refused": "slices with negative numbers",
    "test_l1_number_must_be_an_integer": "does not check the type of limit",
    "test_l2_max_depth_below_one_is_refused": "slices with max_depth",
    "test_l3_later_op_of_a_batch_is_newer": "returns the order of insertion (#8831)",
    "test_l3_newest_update_comes_first": "returns the order of insertion (#8831)",
    "test_l4_emptied_namespace_is_not_listed": "reads create namespaces, deletes keep them (#8734)",
    "test_l4_namespace_is_not_made_by_reading": "reads create namespaces, deletes keep them (#8734)",
    "test_n1_bad_label_in_a_batch_is_refused": "batch does not check labels",
    "test_n1_bad_label_in_a_read_is_refused": "batch does not check labels",
    "test_n2_empty_namespace_in_a_batch_is_refused": "accepts an item in the empty namespace (#8832)",
    "test_t1_created_at_survives_an_update": "an update sets created_at anew (#8340)",
    "test_v10_equal_texts_in_one_batch_are_stored": "raises for equal texts in one call (#8822)",
    "test_v10_equal_texts_in_one_item_are_stored": "raises for equal texts in one call (#8822)",
    "test_v12_delete_and_put_leave_no_vector": "keeps vectors of former texts (#8214)",
    "test_v12_shrunk_array_leaves_no_vector": "keeps vectors of former texts (#8214)",
    "test_v12_update_without_index_removes_the_vector": "keeps vectors of former texts (#8214)",
    "test_v12_update_without_the_field_removes_the_vector": "keeps vectors of former texts (#8214)",
    "test_v1_vector_of_the_wrong_length_is_refused": "does not check the length of a vector",
    "test_v3_item_without_vector_is_not_found_by_a_query": "appends items without a vector",
    "test_v6_zero_vectors_score_zero": "scores of a zero vector are not 0.0",
    "test_v_equal_texts_are_embedded_once": "embeds equal texts of one batch several times",
    "test_v_invalid_path_is_refused_before_any_write": "reads a path with an open bracket as something else",
    "test_v_path_selects_its_texts[$]": "takes $ given at a put for a field name",
    "test_v_ties_go_to_the_newer_item": "leaves the order of equal scores open",
}
"""`InMemoryStore`, sync and async."""
_SQLITE_BOTH: Final[Mapping[str, str]] = {
    "test_a2_non_json_value_is_refused[datetime]": "turns a datetime into a string",
    "test_a2_non_json_value_is_refused[infinity]": "turns infinity into null",
    "test_a2_non_json_value_is_refused[nan]": "turns NaN into null",
    "test_a2_numbers_round_trip[10000000000000000000000000000000000000000]": "refuses integers beyond 64 bits",
    "test_a2_refusal_names_the_path": "does not say where in the value the trouble is",
    "test_a3_unstorable_key_is_refused[nul]": "accepts NUL in a key",
    "test_b3_only_surviving_puts_are_embedded": "embeds puts that are overwritten in their own batch",
    "test_b_unknown_op_is_refused": "gives None for an op it does not know",
    "test_f11_bool_is_no_number": "compares bools with numbers",
    "test_f12_lists_are_equal_element_by_element": "$eq compares a list with its JSON text",
    "test_f13_large_integers_are_exact": "rounds large integers to floats",
    "test_f13_ranges_of_large_integers_are_exact": "rounds large integers to floats",
    "test_f14_field_names_may_be_any_string": "allows letters, digits, dots, hyphens and underscores in a field name only",
    "test_f1_empty_nested_operand_matches_any_object": "takes an empty object for no condition",
    "test_f1_nested_dict_operand_is_a_subset_match": "takes a nested field for an operator (#8786)",
    "test_f2_operator_in_a_nested_dict_applies_at_its_depth": "takes a nested field for an operator (#8786)",
    "test_f3_eq_of_a_dict_is_whole_value_equality": "$eq with a dict never matches (#8759)",
    "test_f3_ne_of_a_dict_is_the_complement_of_eq": "$ne with a dict always matches (#8759)",
    "test_f4_literal_key_with_a_dot_wins": "always takes a dot for a path",
    "test_f7_range_ignores_values_of_another_type": "compares values of different types",
    "test_f7_range_with_an_operand_that_has_no_order_matches_nothing[$gte]": "compares values of different types",
    "test_f7_range_with_an_operand_that_has_no_order_matches_nothing[$lt]": "compares values of different types",
    "test_f7_range_with_an_operand_that_has_no_order_matches_nothing[$lte]": "compares values of different types",
    "test_f9_ne_includes_a_missing_field": "leaves out items without the field (#8366)",
    "test_l1_negative_number_is_refused": "takes a negative limit for no limit",
    "test_l1_number_must_be_an_integer": "does not check the type of limit",
    "test_l2_max_depth_below_one_is_refused": "does not check max_depth",
    "test_n2_empty_namespace_in_a_batch_is_refused": "accepts an item in the empty namespace (#8832)",
    "test_p_index_survives_reopening": "embeds the query anew as a document",
    "test_t2_timestamps_are_aware_utc": "timestamps have no time zone",
    "test_v11_only_configured_fields_are_embedded": "ignores fields (#8808)",
    "test_v12_delete_and_put_leave_no_vector": "keeps vectors of former texts (#8214)",
    "test_v12_shrunk_array_leaves_no_vector": "keeps vectors of former texts (#8214)",
    "test_v12_text_of_an_update_replaces_the_former": "ignores fields (#8808)",
    "test_v12_update_without_index_removes_the_vector": "keeps vectors of former texts (#8214)",
    "test_v12_update_without_the_field_removes_the_vector": "keeps vectors of former texts (#8214)",
    "test_v1_vector_of_the_wrong_length_is_refused": "raises the database error",
    "test_v2_nearest_comes_first[cosine]": "ignores fields (#8808)",
    "test_v2_scores_are_the_distance_with_higher_better[cosine]": "ignores fields (#8808)",
    "test_v3_item_without_vector_is_not_found_by_a_query": "ignores fields (#8808)",
    "test_v5_query_is_embedded_as_a_query": "embeds the query as a document",
    "test_v6_zero_vectors_score_zero": "ignores fields (#8808)",
    "test_v7_pages_concatenate_to_the_ranked_list": "ignores fields (#8808)",
    "test_v8_item_with_many_vectors_counts_once": "ignores fields (#8808)",
    "test_v8_many_vectors_of_one_put_count_once": "ignores fields (#8808)",
    "test_v_documents_of_a_batch_are_one_call": "embeds text by text or the whole value",
    "test_v_equal_texts_are_embedded_once": "embeds equal texts of one batch several times",
    "test_v_filter_applies_before_ranking": "ignores fields (#8808)",
    "test_v_invalid_path_is_refused_before_any_write": "reads a path with an open bracket as something else",
    "test_v_path_selects_its_texts[$]": "takes $ given at a put for a field name",
    "test_v_query_keeps_to_its_scope": "ignores fields (#8808)",
    "test_x1_expired_item_is_absent_before_a_sweep": "shows expired items until they are swept (#8902)",
    "test_x1_expired_item_is_absent_from_a_query": "shows expired items until they are swept (#8902)",
    "test_x2_configuration_can_decline_refresh": "shows expired items until they are swept (#8902)",
    "test_x2_refresh_can_be_declined": "shows expired items until they are swept (#8902)",
    "test_x3_fractions_of_a_minute_count": "shows expired items until they are swept (#8902)",
    "test_x_default_ttl_applies_to_put": "shows expired items until they are swept (#8902)",
    "test_x_ttl_that_is_not_positive_is_refused[-1]": "does not check the time to live",
    "test_x_ttl_that_is_not_positive_is_refused[0]": "does not check the time to live",
}

SQLITE_STORE: Final[Mapping[str, str]] = {
    **_SQLITE_BOTH,
    "test_s1_one_object_has_both_apis": "the sync class has no async methods",
    "test_s2_bad_op_harms_only_its_caller": "the sync class has no async methods",
    "test_s3_store_serves_a_second_loop": "the sync class has no async methods",
    "test_s_parallel_coroutines_lose_nothing": "the sync class has no async methods",
}
"""`SqliteStore`, sync only."""
ASYNC_SQLITE_STORE: Final[Mapping[str, str]] = {
    **_SQLITE_BOTH,
    "test_a3_non_string_key_is_its_string": "aput applies str() to the key, aget and adelete do not",
    "test_s2_bad_op_harms_only_its_caller": "the queue fails every call of a tick",
    "test_s3_store_serves_a_second_loop": "its queue belongs to one loop",
    "test_s4_sync_call_works_on_the_thread_of_a_loop": "refuses sync calls on the thread of its loop",
}
"""`AsyncSqliteStore`, async only."""
SQLITE_STORE_UNSTABLE: Final[Mapping[str, str]] = {
    "test_l3_later_op_of_a_batch_is_newer": "timestamps have whole seconds",
    "test_l3_newest_update_comes_first": "timestamps have whole seconds",
    "test_s_cancelled_put_is_whole_or_absent": "a cancelled batch leaves its transaction open (#5503)",
    "test_t1_created_at_survives_an_update": "an update sets created_at anew (#7411)",
    "test_t1_delete_and_put_start_a_new_created_at": "timestamps have whole seconds",
    "test_t2_timestamps_are_finer_than_a_second": "timestamps have whole seconds",
    "test_v_ties_go_to_the_newer_item": "leaves the order of equal scores open",
    "test_x1_put_over_an_expired_item_starts_anew": "shows expired items until they are swept (#8902)",
    "test_x2_items_beyond_the_limit_are_not_refreshed": "shows expired items until they are swept (#8902)",
    "test_x2_read_refreshes_by_default": "shows expired items until they are swept (#8902)",
    "test_x_sweep_removes_and_counts": "expiry has whole seconds",
}
"""Both Sqlite stores: what depends on chance."""
_POSTGRES_BOTH: Final[Mapping[str, str]] = {
    "test_a2_non_json_value_is_refused[infinity]": "raises the database error",
    "test_a2_non_json_value_is_refused[integer_key]": "turns an integer key into a string",
    "test_a2_non_json_value_is_refused[nan]": "raises the database error",
    "test_a2_non_json_value_is_refused[surrogate]": "raises the database error",
    "test_a2_non_json_value_is_refused[surrogate_key]": "raises the database error",
    "test_a2_numbers_round_trip[-0.0]": "jsonb has no negative zero",
    "test_a2_numbers_round_trip[1.7976931348623157e+308]": "jsonb gives a large float back as an integer",
    "test_a2_refusal_names_the_path": "does not say where in the value the trouble is",
    "test_a2_text_round_trips[nul]": "jsonb has no NUL",
    "test_a3_unstorable_key_is_refused[nul]": "raises the database error",
    "test_b1_refused_value_leaves_the_batch_unwritten": "a value that fails late leaves the statements before it committed",
    "test_b_unknown_op_is_refused": "gives None for an op it does not know",
    "test_f10_none_matches_null_and_missing": "matches null only, not a missing field",
    "test_f1_empty_nested_operand_matches_any_object": "takes an empty object for no condition",
    "test_f1_nested_dict_operand_is_a_subset_match": "takes a nested field for an operator (#8786)",
    "test_f2_operator_in_a_nested_dict_applies_at_its_depth": "takes a nested field for an operator (#8786)",
    "test_f3_ne_of_a_dict_is_the_complement_of_eq": "$ne leaves out a missing field",
    "test_f6_numbers_compare_as_numbers": "compares numbers as texts (#7684)",
    "test_f7_range_ignores_values_of_another_type": "compares values as texts",
    "test_f7_range_with_an_operand_that_has_no_order_matches_nothing": "compares values as texts",
    "test_f9_ne_includes_a_missing_field": "leaves out items without the field (#8366)",
    "test_f_filter_applies_to_the_whole_scope": "compares numbers as texts (#7684)",
    "test_f_int_and_float_compare_by_value": "compares numbers as texts (#7684)",
    "test_f_unknown_top_level_operator_is_refused": "takes an unknown top-level operator for a field name (#8829)",
    "test_l1_negative_number_is_refused": "raises the database error (#8696)",
    "test_l1_number_must_be_an_integer": "does not check the type of limit",
    "test_l2_max_depth_below_one_is_refused": "raises another error",
    "test_n2_empty_namespace_in_a_batch_is_refused": "accepts an item in the empty namespace (#8832)",
    "test_v12_shrunk_array_leaves_no_vector": "keeps vectors of former texts (#8214)",
    "test_v12_update_without_index_removes_the_vector": "keeps vectors of former texts (#8214)",
    "test_v12_update_without_the_field_removes_the_vector": "keeps vectors of former texts (#8214)",
    "test_v1_vector_of_the_wrong_length_is_refused": "raises the database error",
    "test_v5_query_is_embedded_as_a_query": "embeds the query as a document",
    "test_v6_zero_vectors_score_zero": "ranks NaN first",
    "test_v7_pages_concatenate_to_the_ranked_list": "limits candidates before the offset applies",
    "test_v8_item_with_many_vectors_counts_once": "counts vectors, not items, against the limit",
    "test_v8_many_vectors_of_one_put_count_once": "counts vectors, not items, against the limit",
    "test_v_equal_texts_are_embedded_once": "embeds equal texts of one batch several times",
    "test_v_invalid_path_is_refused_before_any_write": "reads a path with an open bracket as something else",
    "test_v_path_selects_its_texts[$]": "takes $ given at a put for a field name",
    "test_x_ttl_that_is_not_positive_is_refused": "does not check the time to live",
}

POSTGRES_STORE: Final[Mapping[str, str]] = {
    **_POSTGRES_BOTH,
}
"""`PostgresStore`, sync only."""
ASYNC_POSTGRES_STORE: Final[Mapping[str, str]] = {
    **_POSTGRES_BOTH,
    "test_a3_non_string_key_is_its_string": "aput applies str() to the key, aget and adelete do not",
    "test_s2_bad_op_harms_only_its_caller": "the queue fails every call of a tick",
    "test_s3_store_serves_a_second_loop": "its queue belongs to one loop",
    "test_s4_sync_call_works_on_the_thread_of_a_loop": "refuses sync calls on the thread of its loop",
}
"""`AsyncPostgresStore`, async only."""
POSTGRES_STORE_UNSTABLE: Final[Mapping[str, str]] = {
    "test_l3_later_op_of_a_batch_is_newer": "the puts of a batch share one timestamp",
    "test_v9_small_scope_of_a_large_store_fills_the_limit": 'the default HNSW index selects before scope and filter apply; kind="flat" is right',
    "test_v_ties_go_to_the_newer_item": "leaves the order of equal scores open",
}
"""Both Postgres stores: what depends on chance."""
POOLED_POSTGRES_STORE: Final[Mapping[str, str]] = {
    test: POSTGRES_STORE[test]
    for test in (
        "test_a2_numbers_round_trip[-0.0]",
        "test_a2_numbers_round_trip[1.7976931348623157e+308]",
    )
}
"""The store `open_store` returns for PostgreSQL, sync and async: what `jsonb` cannot hold."""
