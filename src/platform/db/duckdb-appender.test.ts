import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDuckDatabase } from './duckdb.ts'
import { createAppendChunks, type DuckColumn } from './duckdb-appender.ts'
import { positionTexts } from './duckdb-texts.ts'

/** More than one chunk, and not a whole number of them. */
const ROWS = 5000
/** Lengths around DuckDB's limit for inlined strings, and around the bytes of a character. */
const TEXTS = [
  '',
  'a',
  'twelve bytes',
  'thirteen byte',
  'ä',
  '🦆🦆🦆',
  '🦆🦆🦆.',
  'x'.repeat(100_000),
  'nul\0inside of it',
  "it's",
]

function packed(texts: readonly string[]) {
  let end = 0
  const bytes = Buffer.from(texts.join(''))
  return { bytes, ends: Uint32Array.from(texts, (text) => (end += Buffer.byteLength(text))) }
}

test('reads back row by row what was appended column by column', async () => {
  using database = await openDuckDatabase(':memory:')
  using connection = await database.connect()
  await connection.run(`CREATE SCHEMA s; CREATE TABLE s.t (a UBIGINT, b BIGINT, c UINTEGER, d USMALLINT, e UTINYINT, f SMALLINT, g BOOLEAN,
    h TIMESTAMP_S, i VARCHAR, j VARCHAR[])`)
  const at = Array.from({ length: ROWS }, (_, row) => row)
  const wide = (of: (row: number) => bigint) => () => BigUint64Array.from(at, (row) => BigInt.asUintN(64, of(row)))
  const narrow = (of: (row: number) => number) => () => Float64Array.from(at, of)
  /** Row `n` has the texts from `n` on, up to three; some rows have none. */
  const listOf = (row: number): number[] => Array.from({ length: row % 4 }, (_, item) => (row + item) % TEXTS.length)
  const columns: DuckColumn[] = [
    { kind: 'u64', values: wide((row) => 2n ** 64n - 1n - BigInt(row)) },
    { kind: 'i64', values: wide((row) => -BigInt(row) * 2n ** 40n) },
    { kind: 'u32', values: narrow((row) => 2 ** 32 - 1 - row) },
    { kind: 'u16', values: narrow((row) => row) },
    { kind: 'u8', values: narrow((row) => row % 256) },
    { kind: 'i16', values: narrow((row) => -row) },
    { kind: 'bool', values: narrow((row) => row % 2) },
    { kind: 'time', values: narrow((row) => 1_700_000_000 + row) },
    { kind: 'text', values: () => Uint32Array.from(at, (row) => row % TEXTS.length) },
    {
      kind: 'texts',
      values() {
        let end = 0
        return { ends: Uint32Array.from(at, (row) => (end += row % 4)), items: Uint32Array.from(at.flatMap(listOf)) }
      },
    },
  ]
  const appender = await connection.appendTo('s', 't')
  {
    using texts = positionTexts(packed(TEXTS))
    appender.append(columns, ROWS, texts)
  }
  appender.flush()
  const pieces = [...(await connection.run('SELECT * FROM s.t ORDER BY d')).pieces()]
  const rows = pieces.flatMap((piece) => (piece[0] ?? []).map((_, row) => piece.map((column) => column[row])))
  assert.equal(rows.length, ROWS)
  rows.forEach(([a, b, c, d, e, f, g, h, i, j], row) => {
    assert.deepEqual(
      [a, b, c, d, e, f, g, Number((h as { seconds: bigint }).seconds), i, (j as { items: unknown[] }).items],
      [
        ...[
          2n ** 64n - 1n - BigInt(row),
          -BigInt(row) * 2n ** 40n,
          2 ** 32 - 1 - row,
          row,
          row % 256,
          row === 0 ? 0 : -row,
        ],
        ...[row % 2 === 1, 1_700_000_000 + row, TEXTS[row % TEXTS.length], listOf(row).map((text) => TEXTS[text])],
      ],
    )
  })
})

test('refuses columns that do not match the table, and writes none of them', async () => {
  using database = await openDuckDatabase(':memory:')
  using connection = await database.connect()
  await connection.run('CREATE SCHEMA s; CREATE TABLE s.t (a UBIGINT, b VARCHAR)')
  const appender = await connection.appendTo('s', 't')
  using texts = positionTexts(packed(['a']))
  assert.throws(() => appender.append([{ kind: 'u64', values: () => BigUint64Array.of(1n) }], 1, texts))
  appender.clear()
  const [piece] = (await connection.run('SELECT count(*) FROM s.t')).pieces()
  assert.deepEqual(piece, [[0n]])
})

test('columns of the same kinds are appended through one chunk, which the library would otherwise free late', () => {
  const chunkFor = createAppendChunks()
  const chunk = chunkFor([{ kind: 'u64' }, { kind: 'texts' }])
  assert.equal(chunkFor([{ kind: 'u64' }, { kind: 'texts' }]), chunk)
  assert.notEqual(chunkFor([{ kind: 'texts' }, { kind: 'u64' }]), chunk)
})

test('what a larger append left in the chunk is not in the next one', async () => {
  using database = await openDuckDatabase(':memory:')
  using connection = await database.connect()
  await connection.run('CREATE SCHEMA s; CREATE TABLE s.t (a VARCHAR, b VARCHAR[])')
  const appendRows = async (count: number, text: string): Promise<void> => {
    const appender = await connection.appendTo('s', 't')
    using texts = positionTexts(packed([text]))
    const every = (of: (row: number) => number) => Uint32Array.from({ length: count }, (_, row) => of(row))
    const lists = { ends: every((row) => (row + 1) * 3), items: new Uint32Array(count * 3) }
    const columns: DuckColumn[] = [
      { kind: 'text', values: () => every(() => 0) },
      { kind: 'texts', values: () => lists },
    ]
    appender.append(columns, count, texts)
    appender.flush()
  }
  await appendRows(ROWS, 'a text that is too long for its place')
  await appendRows(1, 'b')
  const found = await connection.run('SELECT a, b::VARCHAR, count(*) FROM s.t GROUP BY ALL ORDER BY a DESC')
  const [piece] = found.pieces()
  assert.deepEqual(piece?.[0], ['b', 'a text that is too long for its place'])
  assert.deepEqual(piece?.[2], [1n, BigInt(ROWS)])
  assert.equal(piece?.[1]?.[0], '[b, b, b]')
})
