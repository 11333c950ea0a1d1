import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TABLES } from '../schema.ts'
import { dialectOf, tableDdl, viewDdl } from './ddl.ts'

test('each dialect uses only features of its servers', () => {
  const dialects = ['18.16.1', '24.8.4.13', '25.7.9', '25.8.29.12', '25.10.1', '26.5.1.1', 'nonsense'].map(dialectOf)
  assert.deepEqual(dialects, ['legacy', 'legacy', 'legacy', 'current', 'current', 'current', 'legacy'])
  const legacy = [...tableDdl('chain', 'legacy'), ...viewDdl('chain', 'chain', 'legacy')].join('\n')
  assert.doesNotMatch(legacy, /CODEC|LowCardinality|Bool|bloom|'UTC'|SETTINGS|DEFINER/)
  const current = [...tableDdl('chain', 'current'), ...viewDdl('chain', 'chain', 'current')].join('\n')
  for (const word of ['CODEC(T64', 'LowCardinality', 'bloom_filter', 'non_replicated_deduplication_window', 'DEFINER'])
    assert.ok(current.includes(word), word)
})

test('every table has a view with all of its columns and without internal ones', () => {
  const views = viewDdl('chain', 'shown', 'legacy')
  for (const { name, columns } of TABLES) {
    const view = views.find((statement) => statement.includes(` shown.${name} `)) ?? ''
    for (const column of columns) assert.match(view, new RegExp(`\\b${column.name}\\b`), `${name}.${column.name}`)
    assert.doesNotMatch(view, /\b_version/)
  }
  assert.deepEqual(
    viewDdl('chain', 'shown', 'legacy', ['blocks']).map((statement) => statement.split(' AS ')[0]),
    ['CREATE DATABASE IF NOT EXISTS shown', 'CREATE VIEW IF NOT EXISTS shown.blocks'],
  )
})
