/** Words of ClickHouse's SELECT. */

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}

/**
 * Words that some version of the server reads as part of its grammar. None of them is taken for a name unless it stands in quotes: what one version
 * takes for an alias another takes for a clause, and the statement would be read otherwise than it was judged.
 */
export const KEYWORDS: ReadonlySet<string> = words(`
  ALL AND ANTI ANY APPLY ARRAY AS ASC ASCENDING ASOF BETWEEN BY CASE COLLATE CROSS DESC DESCENDING DISTINCT DIV ELSE END EXCEPT EXISTS
  EXPLAIN FETCH FILL FILTER FINAL FORMAT FROM FULL GLOBAL GROUP GROUPING HAVING ILIKE IN INNER INTERPOLATE INTERSECT INTERVAL INTO IS JOIN
  LATERAL LEFT LIKE LIMIT LOCAL MOD NATURAL NOT OFFSET ON ONLY OR ORDER OUTER OUTFILE OVER PARALLEL PARTITION PASTE PREWHERE QUALIFY REGEXP
  REPLACE RIGHT SAMPLE SELECT SEMI SETTINGS STEP THEN TOP UNION USING VALUES WHEN WHERE WINDOW WITH XOR
`)

/** Clauses that write, name functions without calling them, or belong at the end of the statement, where they have been taken off. */
export const REFUSED_CLAUSES: Readonly<Record<string, string>> = {
  INTO: 'INTO is not supported here: the response is the body.',
  TOP: 'TOP is not supported here: use LIMIT.',
  APPLY: 'APPLY is not supported here: write the call.',
  FORMAT: 'FORMAT stands once, at the end.',
  SETTINGS: 'SETTINGS stand once, at the end, as name = value.',
  RECURSIVE: 'RECURSIVE is not supported here.',
}

/** What may stand between a table and JOIN. */
export const JOIN_WORDS = [
  'GLOBAL',
  'LOCAL',
  'ANY',
  'ALL',
  'ASOF',
  'SEMI',
  'ANTI',
  'INNER',
  'LEFT',
  'RIGHT',
  'FULL',
  'OUTER',
  'CROSS',
  'PASTE',
] as const

export const INTERVAL_UNITS: ReadonlySet<string> = words(`
  MILLISECOND MILLISECONDS SECOND SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS WEEK WEEKS MONTH MONTHS QUARTER QUARTERS YEAR YEARS
`)
