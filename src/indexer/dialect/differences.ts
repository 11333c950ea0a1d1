/** Where a statement has another result than on ClickHouse. docs/schema.md lists them; a test compares both engines and finds exactly the examples. */
export const DIALECT_DIFFERENCES: readonly { readonly text: string; readonly example?: string }[] = [
  {
    text: '`JSONType` has the type `String`, not an `Enum8` of the same names.',
    example: `SELECT JSONExtractArrayRaw('[1,"a"]') AS a, JSONExtractKeys('{"a":1,"b":2}') AS k, JSONType('{"a":1}', 'a') AS t`,
  },
  {
    text: '`join_use_nulls` is 1 unless a query sets it to 0, as in the profile of a provisioned ClickHouse: where an outer join has no row the columns are NULL.',
  },
  {
    text: '`uniq`, `uniqCombined` and `topK` are exact; of equally frequent values `topK` returns the smaller one first. `quantile`, `quantileTDigest` and `quantileTiming` are computed from all values.',
  },
  { text: '`histogram` returns buckets of equal width.' },
  {
    text: 'A conversion to a smaller whole number, or a product of more than 64 bits, is an error when the value does not fit.',
  },
  { text: '`base58Encode` takes at most 66 bytes and `base58Decode` 90 characters (`base58_length`).' },
  {
    text: '`MD5`, `SHA1` and `SHA256` return `String`, not `FixedString`; `FixedString` and `toFixedString` are not offered.',
  },
  { text: '`Date32` is reported as `Date`; digits of `DateTime64` after the sixth are zero.' },
]
