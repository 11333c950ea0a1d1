import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseStatement } from '../query/statement.ts'
import { readSessionStatement } from './session-statement.ts'
import { SETTINGS } from './setting-list.ts'
import { readSettings } from './settings.ts'

test('settings that are honoured', () => {
  const read = (given: Record<string, string>) => readSettings(Object.entries(given))
  assert.deepEqual(read({}), {
    secondsMax: undefined,
    rowsMax: undefined,
    bytesMax: undefined,
    endsAtRowsMax: false,
    quote64: true,
    isCompressed: false,
    hasProgress: false,
    timezone: 'UTC',
    dateTimeFormat: 'simple',
    joinUsesNulls: true,
    revision: 0,
  })
  assert.equal(read({ client_protocol_version: '54460' }).revision, 54_460)
  assert.equal(read({ max_execution_time: '2.5' }).secondsMax, 2.5)
  assert.equal(read({ max_result_rows: '0' }).rowsMax, undefined)
  assert.equal(read({ output_format_json_quote_64bit_integers: 'false' }).quote64, false)
  assert.equal(read({ enable_http_compression: 'true' }).isCompressed, true)
  assert.equal(read({ session_timezone: 'Europe/Berlin' }).timezone, 'Europe/Berlin')
  assert.equal(read({ join_use_nulls: '0' }).joinUsesNulls, false)
  assert.equal(read({ join_use_nulls: '1' }).joinUsesNulls, true)
  assert.equal(read({ session_timezone: '' }).timezone, 'UTC')
})

test('every setting of the list is accepted with its own value, and every other one is refused', () => {
  for (const { name, value } of SETTINGS) readSettings([[name, value]])
  for (const [name, value, type, message] of [
    ['nosuch', '1', 'UNKNOWN_SETTING', /^Unknown setting 'nosuch'; SHOW SETTINGS lists/],
    ['max_memory_usage', '1', 'UNKNOWN_SETTING', /max_memory_usage/],
    ['__proto__', '1', 'UNKNOWN_SETTING', /__proto__/],
    ["x'; DROP", '1', 'UNKNOWN_SETTING', /'x\?\?\?DROP'/],
    ['readonly', '0', 'READONLY', /only reading/],
    ['join_use_nulls', 'maybe', 'BAD_ARGUMENTS', /takes a number/],
    ['extremes', '1', 'BAD_ARGUMENTS', /can only be 0/],
    ['max_result_rows', 'many', 'BAD_ARGUMENTS', /takes a number/],
    ['max_result_rows', '-1', 'BAD_ARGUMENTS', /takes a number/],
    ['result_overflow_mode', 'drop', 'BAD_ARGUMENTS', /one of throw, break/],
    ['date_time_output_format', 'x', 'BAD_ARGUMENTS', /one of simple, iso, unix_timestamp/],
    ['session_timezone', '+01:00', 'BAD_ARGUMENTS', /takes a time zone/],
    ['session_timezone', 'Mars/Base', 'BAD_ARGUMENTS', /takes a time zone/],
    ['log_comment', 'x'.repeat(257), 'BAD_ARGUMENTS', /at most 256 characters/],
  ] as const)
    assert.throws(() => readSettings([[name, value]]), { type, message }, name)
})

test('SET and USE', () => {
  const read = (query: string) => readSessionStatement(parseStatement(query), new Set(['solana', 'system']))
  assert.deepEqual(read("SET max_threads = 2, log_comment = 'a b', `final`=true;"), {
    settings: { max_threads: '2', log_comment: 'a b', final: 'true' },
    database: undefined,
  })
  assert.deepEqual(read('use System'), { settings: {}, database: 'system' })
  assert.deepEqual(read('USE DATABASE `solana`'), { settings: {}, database: 'solana' })
  assert.equal(read('SELECT 1'), undefined)
  for (const [query, type] of [
    ['SET', 'SYNTAX_ERROR'],
    ['SET max_threads', 'SYNTAX_ERROR'],
    ['SET max_threads = (SELECT 1)', 'SYNTAX_ERROR'],
    ['SET max_threads = 1 max_block_size = 2', 'SYNTAX_ERROR'],
    ['SET max_threads = 1,', 'SYNTAX_ERROR'],
    ['SET max_threads = -1', 'BAD_ARGUMENTS'],
    ['SET nosuch = 1', 'UNKNOWN_SETTING'],
    ['USE', 'SYNTAX_ERROR'],
    ['USE other', 'UNKNOWN_DATABASE'],
    ['USE system, solana', 'SYNTAX_ERROR'],
  ] as const)
    assert.throws(() => read(query), { type }, query)
})
