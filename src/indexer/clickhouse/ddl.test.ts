import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TABLES } from '../schema.ts'
import { dialectOf, tableDdl, viewDdl } from './ddl.ts'

test('servers are spoken to in words they know', () => {
  const dialects = ['18.16.1', '24.8.4.13', '25.7.9', '25.8.29.12', '25.10.1', '26.5.1.1', 'nonsense'].map(dialectOf)
  assert.deepEqual(dialects, ['plain', 'plain', 'plain', 'current', 'current', 'current', 'plain'])
  const plain = [...tableDdl('chain', 'plain'), ...viewDdl('chain', 'chain', 'plain')].join('\n')
  assert.doesNotMatch(plain, /CODEC|LowCardinality|Bool|bloom|'UTC'|SETTINGS|DEFINER/)
  const current = [...tableDdl('chain', 'current'), ...viewDdl('chain', 'chain', 'current')].join('\n')
  for (const word of ['CODEC(T64', 'LowCardinality', 'bloom_filter', 'non_replicated_deduplication_window', 'DEFINER'])
    assert.ok(current.includes(word), word)
})

test('every table has its view with all of its columns and none of ours', () => {
  const views = viewDdl('chain', 'shown', 'plain')
  for (const { name, columns } of TABLES) {
    const view = views.find((statement) => statement.includes(` shown.${name} `)) ?? ''
    for (const column of columns) assert.match(view, new RegExp(`\\b${column.name}\\b`), `${name}.${column.name}`)
    assert.doesNotMatch(view, /\b_version/)
  }
  assert.deepEqual(
    viewDdl('chain', 'shown', 'plain', ['blocks']).map((statement) => statement.split(' AS ')[0]),
    ['CREATE DATABASE IF NOT EXISTS shown', 'CREATE VIEW IF NOT EXISTS shown.blocks'],
  )
})
