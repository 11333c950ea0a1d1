/** Where a statement has another result than on ClickHouse. docs/schema.md lists them; a test compares both engines and finds exactly the examples. */
export const DIALECT_DIFFERENCES: readonly { readonly text: string; readonly examples?: readonly string[] }[] = [
  {
    text: '`JSONType` has the type `String`, not an `Enum8` of the same names.',
    examples: [
      `SELECT JSONExtractArrayRaw('[1,"a"]') AS a, JSONExtractKeys('{"a":1,"b":2}') AS k, JSONType('{"a":1}', 'a') AS t`,
    ],
  },
  {
    text: '`join_use_nulls` is 1 unless a query sets it to 0, as in the profile of a provisioned ClickHouse: where an outer join has no row the columns are NULL.',
  },
  {
    text: 'Of a tuple on the side of a join that has no row the elements are NULL: its type is `Tuple(Nullable(…))`, not `Nullable(Tuple(…))`.',
  },
  {
    text: 'Not a number (NaN) is the largest number for `greatest`, `least` and functions of arrays, and equal to itself inside of arrays and tuples.',
  },
  {
    text: '`uniq`, `uniqCombined` and `topK` are exact; of equally frequent values `topK` returns the smaller one first. `quantile`, `quantileTDigest` and `quantileTiming` are computed from all values.',
  },
  { text: '`histogram` returns buckets of equal width.' },
  {
    text: 'A conversion of a fraction or a text to a whole number, arithmetic of 128 bits, a sum, or a whole number that is rounded, is an error when the value does not fit.',
  },
  {
    text: 'A time of day that a time zone has twice is the later one, and one that it has not is after the gap; in ClickHouse they are the earlier one and before the gap. A date that does not exist (`2024-02-30`) is not read, and dates and times outside of the range of their type are its first or last one.',
  },
  {
    text: '`simpleJSONExtract…` and `visitParam…` read a key of the outermost object of valid JSON. `toJSONString` quotes no 64-bit numbers and escapes no `/`. Functions of regular expressions go on behind an empty match.',
  },
  { text: 'The modes of weeks are 0 to 9. `toStartOfInterval` takes no origin.' },
  { text: '`base58Encode` takes at most 66 bytes and `base58Decode` 90 characters (`base58_length`).' },
  {
    text: '`MD5`, `SHA1` and `SHA256` return `String`, not `FixedString`; `FixedString` and `toFixedString` are not offered.',
  },
  { text: '`Date32` is reported as `Date`; digits of `DateTime64` after the sixth are zero.' },
  {
    text: '`substring`, `left`, `right`, `reverse` and padding count characters of UTF-8, not bytes.',
  },
  {
    text: '`arrayCumSum`, `arrayCumSumNonNegative`, `arrayEnumerateUniq`, `arrayFill`, `arrayReverseFill`, `arraySplit`, `arrayReverseSplit`, `hasSubstr`, `groupArrayMovingSum`, `groupArrayMovingAvg` and `maxIntersections` take at most 4,000 elements, `quantileExactWeighted` and `quantilesExactWeighted` 100,000 (`list_length`). `sumMap`, `minMap`, `maxMap` and `topKWeighted` take as many elements as 16,000,000 divided by the number of keys, `histogram` by that of buckets.',
  },
  { text: 'The elements of `arrayUnion` and `arraySymmetricDifference` are in the order of the arguments.' },
  {
    text: 'Refused by name: hashes other than `MD5`, `SHA1` and `SHA256` (`cityHash64`, `sipHash64`, `xxHash64` …).',
    examples: [
      `SELECT cityHash64('abc') AS a, cityHash64(1) AS b, cityHash64('a', 'b') AS c`,
      'SELECT cityHash64(fee_payer) % 4 AS bucket, count() AS c FROM transactions GROUP BY bucket ORDER BY bucket',
    ],
  },
  {
    text: 'Refused by name: `repeat`, `space` and `generate_series` (use `leftPad` and `numbers`), states of aggregates (`sumState`, `sumMerge` …), the ending `-ForEach`, `windowFunnel`, `sequenceMatch`, `exponentialMovingAverage`, `mapConcat`.',
    examples: [
      'SELECT uniqExactMerge(s) AS u FROM (SELECT uniqExactState(fee_payer) AS s FROM transactions GROUP BY slot)',
      'SELECT sumMerge(s) AS total FROM (SELECT slot, sumState(fee) AS s FROM transactions GROUP BY slot)',
      'SELECT sumForEach([number, number * 2]) AS s, maxForEach([number, 5]) AS m FROM numbers(4)',
      `SELECT windowFunnel(100)(block_time, kind = 'sol', kind = 'transferChecked') AS level FROM token_transfers`,
      'SELECT slot, exponentialMovingAverage(2)(tx_count, slot) OVER (ORDER BY slot) AS e FROM blocks ORDER BY slot LIMIT 3',
      `SELECT mapConcat(map('a', 1), map('c', 3)) AS c`,
      'SELECT generate_series AS g FROM generate_series(1, 5, 2)',
    ],
  },
  {
    text: 'Refused by name: DISTINCT in `skewPop`, `skewSamp`, `kurtPop`, `kurtSamp`, `avgWeighted`, `groupArrayMovingSum`, `groupArrayMovingAvg`, with the ending `-Array`, and `count(DISTINCT *)`; the pattern `%z` of `parseDateTime` beside a time zone.',
  },
  {
    text: 'Refused by name: `WITH RECURSIVE`, `INTERPOLATE`, `COLLATE`, the type `Enum`, tuples with named elements as results (select the elements).',
    examples: [
      'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) AS s FROM t',
      `SELECT number AS n, 'x' AS s FROM numbers(3) WHERE n != 1 ORDER BY n WITH FILL STEP 1 INTERPOLATE (s AS 'y')`,
      `SELECT CAST('a' AS Enum8('a' = 1, 'b' = 2)) AS e, CAST(e, 'Int8') AS v`,
    ],
  },
]
