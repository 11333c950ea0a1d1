/**
 * Functions of the embedded engine that a translated statement may call, by their names in lower case. The SQL policy refuses every other one: some
 * of the engine's eight hundred functions read files, change settings, sleep, or make a gigabyte out of a number or a short text. Customers write
 * the functions of `dialect/function-list.ts`; those of this list that take a length or build a list are called there with bounded arguments only.
 */

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}

/** Functions that the parser writes for syntax. */
const SYNTAX = words(`
  count_star ~~ !~~ ~~* !~~* like_escape not_like_escape ilike_escape not_ilike_escape list_value struct_pack array_extract struct_extract row
`)
const OPERATORS = words('+ - * / // % || & | << >> ~ xor')
const AGGREGATES = words(`
  count sum avg min max any_value first last arg_max arg_min quantile_cont quantile_disc stddev_pop stddev_samp var_pop var_samp corr covar_pop
  covar_samp entropy histogram list string_agg bit_and bit_or bit_xor regr_slope regr_intercept
`)
const WINDOWS = words('row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value')
const NUMBERS = words(`
  abs ceil floor round round_even trunc sign sqrt cbrt exp ln log2 log10 pow pi greatest least isnan isinf isfinite gcd lcm sin cos tan asin acos
  atan atan2 sinh cosh tanh asinh acosh atanh gamma lgamma radians degrees bit_count factorial random uuid
`)
const TEXTS = words(`
  length strlen octet_length lower upper trim ltrim rtrim substring left right strpos reverse concat concat_ws starts_with ends_with contains
  string_split string_split_regex regexp_matches regexp_extract regexp_extract_all regexp_replace regexp_full_match replace translate hex unhex
  to_hex md5 sha1 sha256 ascii chr to_base64 from_base64 encode decode lpad rpad printf levenshtein damerau_levenshtein hamming url_encode
  url_decode base58_encode base58_decode
`)
const TIMES = words(`
  date_trunc date_part date_diff date_sub epoch epoch_ms epoch_us make_timestamp make_date strftime strptime try_strptime get_current_timestamp last_day dayname
  monthname timezone to_seconds to_minutes to_hours to_days to_weeks to_months to_years to_milliseconds to_microseconds
`)
const LISTS = words(`
  list_contains list_position list_extract list_unique list_sort list_reverse list_slice list_concat list_append list_prepend list_transform
  list_filter list_reduce list_sum list_avg list_min list_max list_product list_median list_first list_has_any list_has_all array_to_string flatten
  list_distinct list_last list_stddev_pop list_stddev_samp list_var_pop list_var_samp len range unnest map map_concat map_from_entries map_keys map_values map_entries map_extract_value cardinality
`)
const VALUES = words(
  'coalesce error json_extract json_extract_string json_array_length json_valid json_type json_keys to_json',
)

export const ALLOWED_FUNCTIONS: ReadonlySet<string> = new Set([
  ...SYNTAX,
  ...OPERATORS,
  ...AGGREGATES,
  ...WINDOWS,
  ...NUMBERS,
  ...TEXTS,
  ...TIMES,
  ...LISTS,
  ...VALUES,
])
