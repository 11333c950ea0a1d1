/**
 * Functions that a customer may call on the embedded engine, by their names in lower case. The SQL policy refuses every other one: some of the
 * engine's eight hundred functions read files, change settings, sleep, or make a gigabyte out of a number or a short text.
 */

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}

/** Functions that the parser writes for syntax. */
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

/** ClickHouse functions that the engine does not have, as macros: name, parameters, body. */
const MACROS: readonly (readonly [name: string, parameters: string, body: string])[] = [
  ['toStartOfMinute', 'x', "date_trunc('minute', x)"],
  ['toStartOfHour', 'x', "date_trunc('hour', x)"],
  ['toStartOfDay', 'x', "date_trunc('day', x)"],
  ['toStartOfMonth', 'x', "date_trunc('month', x)"],
  ['toDate', 'x', 'CAST(x AS DATE)'],
  ['toDateTime', 'x', 'CAST(x AS TIMESTAMP)'],
  ['toYYYYMMDD', 'x', "CAST(strftime(x, '%Y%m%d') AS UINTEGER)"],
  ['toUnixTimestamp', 'x', 'CAST(epoch(x) AS UINTEGER)'],
  ['toUInt8', 'x', 'CAST(x AS UTINYINT)'],
  ['toUInt16', 'x', 'CAST(x AS USMALLINT)'],
  ['toUInt32', 'x', 'CAST(x AS UINTEGER)'],
  ['toUInt64', 'x', 'CAST(x AS UBIGINT)'],
  ['toInt32', 'x', 'CAST(x AS INTEGER)'],
  ['toInt64', 'x', 'CAST(x AS BIGINT)'],
  ['toFloat64', 'x', 'CAST(x AS DOUBLE)'],
  ['toString', 'x', 'CAST(x AS VARCHAR)'],
  ['uniq', 'x', 'approx_count_distinct(x)'],
  ['uniqExact', 'x', 'count(DISTINCT x)'],
  ['uniqExactIf', 'x, c', 'count(DISTINCT x) FILTER (WHERE c)'],
  ['sumIf', 'x, c', 'sum(x) FILTER (WHERE c)'],
  ['avgIf', 'x, c', 'avg(x) FILTER (WHERE c)'],
  ['minIf', 'x, c', 'min(x) FILTER (WHERE c)'],
  ['maxIf', 'x, c', 'max(x) FILTER (WHERE c)'],
  ['groupArray', 'x', 'list(x)'],
  ['groupUniqArray', 'x', 'list(DISTINCT x)'],
  ['arrayJoin', 'x', 'unnest(x)'],
  ['has', 'list, x', 'list_contains(list, x)'],
  ['empty', 'x', 'len(x) = 0'],
  ['notEmpty', 'x', 'len(x) > 0'],
  ['startsWith', 'x, y', 'starts_with(x, y)'],
  ['endsWith', 'x, y', 'suffix(x, y)'],
  ['intDiv', 'x, y', 'x // y'],
  ['modulo', 'x, y', 'x % y'],
  ['multiIf', 'c, x, y', 'CASE WHEN c THEN x ELSE y END'],
  ['anyLast', 'x', 'last(x)'],
  ['addMinutes', 'x, n', 'x + to_minutes(n)'],
  ['subtractMinutes', 'x, n', 'x - to_minutes(n)'],
  ['addHours', 'x, n', 'x + to_hours(n)'],
  ['subtractHours', 'x, n', 'x - to_hours(n)'],
  ['addDays', 'x, n', 'x + to_days(n)'],
  ['subtractDays', 'x, n', 'x - to_days(n)'],
  ['JSONExtractString', 'x, y', 'json_extract_string(x, y)'],
  ['arrayElement', 'x, n', 'list_extract(x, n)'],
  ['assumeNotNull', 'x', 'x'],
  ['toNullable', 'x', 'x'],
  ['isNull', 'x', 'x IS NULL'],
  ['isNotNull', 'x', 'x IS NOT NULL'],
  ['lengthUTF8', 'x', 'length(x)'],
  ['splitByChar', 'x, y', 'string_split(y, x)'],
  ['plus', 'x, y', 'x + y'],
  ['minus', 'x, y', 'x - y'],
  ['equals', 'x, y', 'x = y'],
  ['notEquals', 'x, y', 'x <> y'],
]

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
  ...MACROS.map(([name]) => name.toLowerCase()),
])

/** Functions that a statement may call, by the names that ClickHouse or the engine has for them; what the parser writes for syntax is left out. */
export const OFFERED_FUNCTIONS: readonly { readonly name: string; readonly isAggregate: boolean }[] = [
  ...AGGREGATES.map((name) => ({ name, isAggregate: true })),
  ...[...WINDOWS, ...NUMBERS, ...TEXTS, ...TIMES, ...LISTS, ...VALUES].map((name) => ({ name, isAggregate: false })),
  ...MACROS.map(([name, , body]) => ({
    name,
    isAggregate: /^(approx_count_distinct|count|sum|avg|min|max|list|last)\(/.test(body),
  })),
]
  .filter(({ name }) => /^\w+$/.test(name))
  .toSorted((a, b) => (a.name < b.name ? -1 : 1))

export function macroDdl(schema: string): string[] {
  return MACROS.map(([name, parameters, body]) => `CREATE MACRO ${schema}.${name}(${parameters}) AS ${body}`)
}
