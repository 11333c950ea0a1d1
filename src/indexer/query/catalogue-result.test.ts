import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readShow } from '../catalogue/show.ts'
import { catalogueResult } from './catalogue-result.ts'
import { collectResult } from './result.ts'
import { parseStatement } from './statement.ts'

const REQUEST = { defaultFormat: 'TabSeparated', settings: {}, database: 'solana' }

async function textOf(query: string, bytesMax = 1_000_000): Promise<string | undefined> {
  const result = catalogueResult(parseStatement(query), REQUEST, { bytesMax }, 7)
  return result && Buffer.from(await collectResult(result)).toString()
}

test('SHOW, DESCRIBE and EXISTS are read from the schema, with SETTINGS and FORMAT at the end', async () => {
  assert.equal(
    await textOf('SHOW DATABASES FORMAT JSONEachRow;;'),
    '{"name":"INFORMATION_SCHEMA"}\n{"name":"information_schema"}\n{"name":"solana"}\n{"name":"system"}\n',
  )
  assert.equal(await textOf('EXISTS TABLE system.tables'), '1\n')
  assert.equal(await textOf('EXISTS TABLE blocks SETTINGS max_threads = 1'), '1\n')
  assert.equal(await textOf('EXISTS TABLE system.users'), '0\n')
  assert.match((await textOf('DESC solana.Blocks SETTINGS max_threads = 1 FORMAT CSV')) ?? '', /^"slot","UInt64",/)
  for (const query of ['SELECT 1', '', '(SHOW TABLES)', 'DESCRIBE (SELECT 1)'])
    assert.equal(readShow(parseStatement(query).tokens, REQUEST), undefined, query)
})

test('refuses a catalogue result over bytesMax, and settings and formats that are not supported', async () => {
  await assert.rejects(textOf('DESCRIBE transactions', 1024), { type: 'TOO_MANY_BYTES' })
  await assert.rejects(textOf('SHOW TABLES SETTINGS max_memory_usage = 1'), { type: 'UNKNOWN_SETTING' })
  await assert.rejects(textOf('SHOW TABLES FORMAT ORC'), { type: 'UNKNOWN_FORMAT' })
  await assert.rejects(textOf('DESCRIBE TABLE system.blocks'), {
    type: 'UNKNOWN_TABLE',
    message: 'Table blocks does not exist; SHOW TABLES lists those that do.',
  })
})

test('SHOW takes a database, patterns and a limit', async () => {
  const cases: Readonly<Record<string, string>> = {
    "SHOW TABLES FROM solana LIKE '%act%'": 'account_activity\ntransactions\n',
    'SHOW TABLES IN "solana" NOT LIKE \'%a%\'': 'blocks\ninstructions\n',
    "SHOW TABLES ILIKE 'BLOCK_'": 'blocks\n',
    "SHOW TABLES LIKE 'BLOCK_'": '',
    'SHOW TABLES FROM default LIMIT 1': 'account_activity\n',
    "SHOW TABLES FROM system LIKE 'd%'": 'data_type_families\ndatabases\ndictionaries\n',
    'SHOW TABLES FROM INFORMATION_SCHEMA LIMIT 2': 'columns\nkey_column_usage\n',
    "SHOW COLUMNS FROM blocks LIKE 'slot'": 'slot\tUInt64\tNO\tPRI SOR\t\\N\t\n',
    "SHOW FULL COLUMNS FROM blocks FROM solana LIKE 'tx%'":
      'tx_count\tUInt32\tNO\t\t\\N\t\t\\N\ttransactions in the block, votes included\t\n',
    "SHOW FIELDS IN solana.blocks LIKE 'slo_'": 'slot\tUInt64\tNO\tPRI SOR\t\\N\t\n',
    'SHOW CREATE TABLE system.one': 'CREATE TABLE system.one\\n(\\n    `dummy` UInt8\\n)\n',
    'SHOW CREATE DATABASE solana': 'CREATE DATABASE solana\\nENGINE = Memory\n',
    "SHOW SETTINGS LIKE 'max_result_ro%'": 'max_result_rows\tUInt64\t0\n',
    'SHOW CHANGED SETTINGS': '',
    'SHOW SETTING max_threads': '0\n',
    'EXISTS DATABASE system': '1\n',
    'EXISTS system.tables': '1\n',
    'EXISTS DATABASE other': '0\n',
    'DESCRIBE system.one': 'dummy\tUInt8\t\t\t\t\t\n',
  }
  for (const [query, expected] of Object.entries(cases)) assert.equal(await textOf(query), expected, query)
  assert.match((await textOf("SHOW FUNCTIONS LIKE 'uniqEx%'")) ?? '', /^uniqExact\t1\t[^\n]*\n$/)
})

test('a pattern as long as the statement is read once, not for each entry', async () => {
  const query = `SHOW FUNCTIONS LIKE '${'a'.repeat(250_000)}'`
  assert.equal(await textOf(query), '')
  const before = process.threadCpuUsage()
  readShow(parseStatement(query).tokens, REQUEST)
  const { user, system } = process.threadCpuUsage(before)
  assert.ok((user + system) / 1000 < 200, `${user + system} µs`)
})

test('SHOW of anything else is refused by name', async () => {
  for (const [query, type, message] of [
    ['SHOW PROCESSLIST', 'NOT_IMPLEMENTED', /^SHOW PROCESSLIST is not offered; offered: SHOW DATABASES, TABLES/],
    ['SHOW GRANTS', 'NOT_IMPLEMENTED', /^SHOW GRANTS is not offered/],
    ['SHOW TABLES FROM other', 'UNKNOWN_DATABASE', /^Database other does not exist/],
    ["SHOW TABLES WHERE name = 'x'", 'SYNTAX_ERROR', /failed at WHERE/],
    ['SHOW TABLES LIKE x', 'SYNTAX_ERROR', /failed at x/],
    ['SHOW COLUMNS FROM base.blocks', 'UNKNOWN_TABLE', /^Table blocks does not exist/],
    ['SHOW CREATE TABLE system.users', 'UNKNOWN_TABLE', /^Table users does not exist/],
    ['SHOW SETTING nosuch', 'UNKNOWN_SETTING', /'nosuch'/],
  ] as const)
    await assert.rejects(textOf(query), { type, message }, query)
})
