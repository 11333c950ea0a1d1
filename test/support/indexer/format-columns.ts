import fc from 'fast-check'

/** A statement with a column of every type that the formats write. */
export const EVERY_TYPE = `SELECT i::UBIGINT AS u64, (-i)::BIGINT AS i64, i::UTINYINT AS u8, (-i)::TINYINT AS i8, i::USMALLINT AS u16, (-i)::SMALLINT AS i16,
  i::UINTEGER AS u32, (-i)::INTEGER AS i32, (i * 3)::HUGEINT AS small_sum, -12345678901234567890123::HUGEINT AS i128, 340282366920938463463374607431768211455::UHUGEINT AS u128,
  (i * 0.25)::DECIMAL(4, 2) AS d4, (i / 8)::DECIMAL(9, 3) AS d9, (-i / 8)::DECIMAL(18, 6) AS d18, (i * 1.5)::DECIMAL(38, 10) AS d38,
  i / 3 AS f64, (i / 3)::FLOAT AS f32, i % 2 = 0 AS flag, CASE WHEN i % 3 = 0 THEN NULL ELSE 'it''s "text" \\ with a tab\t and 🦆 ' || i END AS some_text,
  '' AS no_text, 'a|b<c>&' AS signs, TIMESTAMP_S '2024-01-02 03:04:05' AS seconds, TIMESTAMP_MS '1969-12-31 23:59:59.5' AS millis,
  TIMESTAMP '2024-01-02 03:04:05.123456' AS micros, TIMESTAMP_NS '2024-01-02 03:04:05.123456789' AS nanos, DATE '2024-02-29' AS day,
  CASE WHEN i % 4 = 0 THEN [] ELSE ['a''b', NULL, 'c' || i] END AS texts, [i::UBIGINT] AS numbers, [[i], [], [i, 1]] AS nested,
  [DATE '2024-02-29'] AS days, {'x': i::INTEGER, 'y z': 'text'} AS pair, map {'k': i::UBIGINT, 'l': 1} AS entries,
  '00112233-4455-6677-8899-aabbccddeeff'::UUID AS id, CASE WHEN i = 1 THEN NULL ELSE i::INTEGER END AS some_number,
  CASE WHEN i % 2 = 0 THEN NULL ELSE ['z'] END AS null_list, CASE WHEN i = 2 THEN NULL ELSE i % 2 = 0 END AS some_flag,
  'word'::ENUM('word', 'other') AS word, [{'a': i, 'b': [i]}] AS tuples
  FROM range(20) t(i)`

/** SQL literals of a type, with NULL among them. */
type Literals = { readonly type: string; readonly literal: fc.Arbitrary<string> }

const text = fc.string({ unit: 'binary', maxLength: 40 }).map((value) => value.replaceAll('\0', ' ').toWellFormed())
const quoted = (value: string): string => `'${value.replaceAll("'", "''")}'`
const bigint = (bits: number, isSigned: boolean) =>
  fc
    .bigInt(
      isSigned
        ? { min: -(2n ** BigInt(bits - 1)), max: 2n ** BigInt(bits - 1) - 1n }
        : { min: 0n, max: 2n ** BigInt(bits) - 1n },
    )
    .map(String)

const SCALARS: readonly Literals[] = [
  ...(
    [
      ['UTINYINT', 8],
      ['USMALLINT', 16],
      ['UINTEGER', 32],
      ['UBIGINT', 64],
    ] as const
  ).map(([type, bits]) => ({ type, literal: bigint(bits, false) })),
  ...(
    [
      ['TINYINT', 8],
      ['SMALLINT', 16],
      ['INTEGER', 32],
      ['BIGINT', 64],
    ] as const
  ).map(([type, bits]) => ({ type, literal: bigint(bits, true) })),
  { type: 'BOOLEAN', literal: fc.boolean().map(String) },
  // ClickHouse's own reader of texts rounds many other numbers wrongly.
  { type: 'DOUBLE', literal: fc.integer({ min: -100_000, max: 100_000 }).map((value) => `'${value / 8}'`) },
  { type: 'FLOAT', literal: fc.integer({ min: -100_000, max: 100_000 }).map((value) => `'${value / 8}'`) },
  { type: 'VARCHAR', literal: text.map(quoted) },
  { type: 'DECIMAL(4,2)', literal: fc.integer({ min: -9999, max: 9999 }).map((value) => (value / 100).toFixed(2)) },
  {
    type: 'DECIMAL(18,4)',
    literal: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map((value) => (value / 10_000).toFixed(4)),
  },
  { type: 'DECIMAL(38,5)', literal: bigint(100, true).map((digits) => `${digits}.12345`) },
  {
    type: 'TIMESTAMP_S',
    literal: fc
      .integer({ min: 0, max: 2 ** 32 - 1 })
      .map((value) => quoted(new Date(value * 1000).toISOString().slice(0, 19))),
  },
  {
    type: 'TIMESTAMP',
    literal: fc
      .integer({ min: -(2 ** 31), max: 2 ** 33 })
      .map((value) => quoted(new Date(value * 1000 + 123).toISOString().slice(0, -1))),
  },
  {
    type: 'DATE',
    literal: fc
      .integer({ min: -20_000, max: 80_000 })
      .map((value) => quoted(new Date(value * 86_400_000).toISOString().slice(0, 10))),
  },
  { type: 'UUID', literal: fc.uuid().map(quoted) },
]
const WIDE: Literals = { type: 'HUGEINT', literal: bigint(128, true) }

/** A statement with random columns, some of them lists or tuples, and random rows. */
export function columnsOf({ withInt128 = true } = {}): fc.Arbitrary<string> {
  const scalar = fc.constantFrom(...SCALARS, ...(withInt128 ? [WIDE] : []))
  const nested = scalar.chain((of) => fc.constantFrom(of, listOf(of), listOf(listOf(of))))
  return fc
    .tuple(fc.array(nested, { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 30 }))
    .chain(([columns, count]) => {
      const row = fc.tuple(...columns.map(({ literal, type }) => cast(literal, type)))
      return fc.array(row, { minLength: count, maxLength: count }).map((rows) => {
        const names = columns.map((_, at) => `c${at}`).join(', ')
        return `SELECT * FROM (VALUES ${rows.map((cells) => `(${cells.join(', ')})`).join(', ')}) t(${names})`
      })
    })
}

function cast(literal: fc.Arbitrary<string>, type: string): fc.Arbitrary<string> {
  return fc.option(literal, { nil: 'NULL', freq: 6 }).map((value) => `CAST(${value} AS ${type})`)
}

function listOf({ type, literal }: Literals): Literals {
  // ClickHouse has no list that is NULL.
  const item = type.endsWith('[]') ? literal : fc.option(literal, { nil: 'NULL', freq: 8 })
  const items = fc.array(item, { maxLength: 4 })
  return { type: `${type}[]`, literal: items.map((values) => `[${values.join(', ')}]`) }
}
