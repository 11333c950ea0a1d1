import assert from 'node:assert/strict'
import { test } from 'node:test'
import { catalogueResult, readCatalogue } from './catalogue.ts'
import { collectResult } from './result.ts'
import { parseStatement } from './statement.ts'

const REQUEST = { defaultFormat: 'TabSeparated', settings: {} }

async function textOf(query: string, bytesMax = 1_000_000): Promise<string | undefined> {
  const result = catalogueResult(parseStatement(query), REQUEST, { bytesMax }, 7)
  return result && Buffer.from(await collectResult(result)).toString()
}

test('SHOW, DESCRIBE and EXISTS are read from the schema, with SETTINGS and FORMAT at the end', async () => {
  assert.equal(await textOf('SHOW DATABASES FORMAT JSONEachRow;;'), '{"name":"solana"}\n')
  assert.equal(await textOf('EXISTS TABLE blocks SETTINGS max_threads = 1'), '1\n')
  assert.equal(await textOf('EXISTS TABLE system.users'), '0\n')
  assert.match((await textOf('DESC solana.Blocks SETTINGS max_threads = 1 FORMAT CSV')) ?? '', /^"slot","UInt64",/)
  for (const query of ['SELECT 1', 'SHOW PROCESSLIST', '', '(SHOW TABLES)'])
    assert.equal(readCatalogue(parseStatement(query)), undefined, query)
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
