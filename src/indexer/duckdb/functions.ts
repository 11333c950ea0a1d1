/**
 * Functions a customer may call on the embedded engine, by their names in lower case. What is not here is refused: among the engine's eight
 * hundred are some that read files, change settings, wait, or make a gigabyte out of a number or a short text.
 */

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}

/** Those that the parser writes for syntax. */
const SYNTAX = words(`
  count_star ~~ !~~ ~~* !~~* ~ !~ list_value struct_pack row array_extract struct_extract
`)
const OPERATORS = words(`
  + - * / // % || & | << >> ** ^ @ not negate add subtract multiply divide mod
`)
const AGGREGATES = words(`
  count sum avg min max any_value first last arg_max arg_min argmax argmin max_by min_by median mode quantile_cont quantile_disc
  quantile stddev stddev_pop stddev_samp var_pop var_samp variance corr covar_pop covar_samp skewness kurtosis
  approx_count_distinct approx_quantile approx_top_k bool_and bool_or bit_and bit_or bit_xor list array_agg
  count_if countif product histogram mean geomean sum_no_overflow kahan_sum fsum
`)
const WINDOWS = words(`
  row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
`)
const NUMBERS = words(`
  abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log2 log10 pow power pi greatest least isnan isinf isfinite even gcd
  lcm sin cos tan atan atan2 radians degrees bit_count xor
`)
const TEXTS = words(`
  length len strlen char_length lower upper lcase ucase trim ltrim rtrim substring substr left right strpos instr position
  reverse concat concat_ws starts_with ends_with suffix prefix contains split_part string_split split regexp_matches regexp_extract
  regexp_full_match hex unhex to_hex from_hex md5 sha256 hash ascii chr unicode to_base64 base64 from_base64
  translate encode decode
`)
const TIMES = words(`
  date_trunc date_part datepart date_diff datediff date_add date_sub datesub time_bucket epoch epoch_ms epoch_us to_timestamp
  make_timestamp make_date strftime strptime year month day hour minute second dayofweek isodow dayofyear week quarter now today
  current_date current_timestamp get_current_timestamp last_day dayname monthname to_seconds to_minutes to_hours to_days to_weeks
  to_months to_years age extract timezone
`)
const LISTS = words(`
  list_contains array_contains list_has array_has list_position array_position list_element list_extract array_length list_distinct
  array_distinct list_unique list_sort array_sort list_reverse list_slice array_slice list_concat list_cat list_aggregate list_sum
  list_avg list_min list_max list_count list_first list_last list_has_any list_has_all unnest list_any_value
`)
const VALUES = words(`
  coalesce ifnull nullif if typeof try_cast json_extract json_extract_string json_array_length json_valid json_type ->>
`)

/** ClickHouse's names, which macros translate (`macros.ts`). */
const CLICKHOUSE = words(`
  tostartofminute tostartofhour tostartofday tostartofmonth todate todatetime toyyyymmdd tounixtimestamp touint8 touint16 touint32
  touint64 toint32 toint64 tofloat64 tostring uniq uniqexact uniqexactif sumif avgif minif maxif grouparray groupuniqarray
  arrayjoin has empty notempty startswith endswith intdiv modulo multiif anylast addhours subtracthours adddays subtractdays
  addminutes subtractminutes jsonextractstring arrayelement assumenotnull tonullable isnull isnotnull lengthutf8 splitbychar plus
  minus equals notequals
`)

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
  ...CLICKHOUSE,
])
