import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { openNumberFile } from './number.ts'
import { makeTestFolder } from './test-folder.ts'

test('a number is there again after it was written, and nothing before', () => {
  using folder = makeTestFolder()
  const file = openNumberFile(folder.file('n'))
  assert.equal(file.read(), undefined)
  file.write(7)
  file.write(2 ** 53 - 1)
  assert.equal(openNumberFile(folder.file('n')).read(), 2 ** 53 - 1)
  assert.equal(readFileSync(folder.file('n'), 'utf8'), '9007199254740991\n')
})

test('a file that holds something else is refused with its path', () => {
  using folder = makeTestFolder()
  for (const text of ['', 'x', '-1', '1.5', '99999999999999999', '1\n2\n']) {
    writeFileSync(folder.file('n'), text)
    assert.throws(() => openNumberFile(folder.file('n')).read(), /n does not hold a number/, JSON.stringify(text))
  }
})
