import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenize } from '../query/sql-tokens.ts'
import { replaceCatalogueNames } from './replace-catalogue-names.ts'

const replaced = (sql: string): string =>
  replaceCatalogueNames(tokenize(sql), 'chain')
    .map(({ text }) => text)
    .join(' ')

test('tables of system and information_schema become views, which keep their names as aliases', () => {
  const cases: Readonly<Record<string, string>> = {
    'SELECT tables.name FROM system.tables': 'SELECT tables . name FROM `chain` . `_system_tables` AS `tables`',
    'SELECT system.one.dummy FROM system.one':
      'SELECT `chain` . `_system_one` . dummy FROM `chain` . `_system_one` AS `one`',
    'SELECT 1, system.one.dummy FROM system.one':
      'SELECT 1 , `chain` . `_system_one` . dummy FROM `chain` . `_system_one` AS `one`',
    'SELECT 1 FROM SYSTEM.`One` WHERE 1': 'SELECT 1 FROM `chain` . `_system_one` AS `one` WHERE 1',
    'SELECT 1 FROM system.one AS o': 'SELECT 1 FROM `chain` . `_system_one` AS o',
    'SELECT 1 FROM system.one o': 'SELECT 1 FROM `chain` . `_system_one` o',
    'SELECT 1 FROM blocks, system.one': 'SELECT 1 FROM blocks , `chain` . `_system_one` AS `one`',
    'SELECT 1 FROM blocks JOIN system.one USING x':
      'SELECT 1 FROM blocks JOIN `chain` . `_system_one` AS `one` USING x',
    'SELECT 1 IN system.one': 'SELECT 1 IN `chain` . `_system_one`',
    'SELECT 1 IN (system.one)': 'SELECT 1 IN ( `chain` . `_system_one` )',
    'SELECT 1 FROM INFORMATION_SCHEMA.TABLES': 'SELECT 1 FROM `chain` . `_information_schema_tables` AS `tables`',
  }
  for (const [sql, expected] of Object.entries(cases)) assert.equal(replaced(sql), expected, sql)
})

test('the default name of the database becomes the configured one', () => {
  assert.equal(
    replaced('SELECT solana.blocks.slot FROM solana.Blocks'),
    'SELECT `chain` . blocks . slot FROM `chain` . Blocks',
  )
})

test('other names stay as they are', () => {
  for (const sql of [
    'SELECT 1 FROM system . users',
    'SELECT 1 FROM chain . system . tables',
    "SELECT 'system.one'",
    'SELECT 1 FROM solana . secrets',
    'SELECT 1 FROM tables',
  ])
    assert.equal(replaced(sql), sql)
})
