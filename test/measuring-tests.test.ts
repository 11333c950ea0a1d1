import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MEASURING_TESTS } from './measuring-tests.ts'

const root = join(import.meta.dirname, '..')

test('every file with a figure that is strict in its long form runs alone there', () => {
  const strict = globSync('{src,test}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules'] }).filter((path) =>
    /\bonBusyMachine\(|\bassert\w*\(.*\bisFull \?|\bif \(isFull\) assert/.test(readFileSync(join(root, path), 'utf8')),
  )
  assert.ok(strict.length > 10)
  assert.deepEqual(
    strict.filter((path) => !MEASURING_TESTS.includes(path)),
    [],
  )
})

test('every listed file exists', () => {
  const found = new Set(globSync('{src,test}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules'] }))
  assert.deepEqual(
    MEASURING_TESTS.filter((path) => !found.has(path)),
    [],
  )
})
