import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { GROWTH_MAX, growthOf } from '../src/core/test-growth.ts'
import { isFullRun } from '../src/core/test-seed.ts'
import { readSource } from './read-source.ts'
import { pumpsOf } from './regex-pumps.ts'
import { SCANNERS } from './support/process/scanners.ts'

const root = join(import.meta.dirname, '..')
/** Long enough to detect quadratic growth; the full check is longer than any line, header, address or field that one of them reads. */
const SIZE_MAX = isFullRun() ? 1 << 17 : 1 << 14

/** All of them, so that none is omitted by a wrong assumption about the source of its text. */
function regularExpressions(): Map<string, { text: string; at: string }[]> {
  const paths = globSync('src/**/*.{ts,tsx}', { cwd: root }).filter(
    (path) => !/\.test\.ts$|\/test-[^/]*\.ts$|\/gen\//.test(path),
  )
  const files = readSource(new Map(paths.toSorted().map((path) => [path, readFileSync(join(root, path), 'utf8')])))
  const found = files.flatMap(({ path, regularExpressions }) =>
    regularExpressions.flatMap(({ text, line }) => (text === undefined ? [] : [{ text, at: `${path}:${line}` }])),
  )
  return Map.groupBy(found, ({ at }) => at.split('/')[1] as string)
}

describe('work grows at most linearly with the length of the input', () => {
  for (const [folder, all] of regularExpressions())
    test(`T29: the ${all.length} regular expressions of src/${folder}`, () => {
      for (const { text, at } of all) {
        const end = text.lastIndexOf('/')
        const regex = new RegExp(text.slice(1, end), text.slice(end + 1).replace('g', ''))
        for (const { name, make } of pumpsOf(text)) {
          const { ratio, milliseconds, size } = growthOf((length) => {
            const input = make(length)
            return () => {
              regex.lastIndex = 0
              return regex.test(input)
            }
          }, SIZE_MAX)
          assert.ok(ratio <= GROWTH_MAX, `${at} ${text} on ${name}: ${ratio} times, ${milliseconds} ms for ${size}`)
        }
      }
    })

  for (const { name, sizeMax = SIZE_MAX, scan, inputs } of SCANNERS)
    test(`T29: ${name}`, () => {
      for (const [input, make] of Object.entries(inputs)) {
        const { ratio, milliseconds, size } = growthOf((length) => {
          const text = make(length)
          return () => {
            // A refused input was read as well.
            try {
              scan(text)
            } catch {
              return
            }
          }
        }, sizeMax)
        assert.ok(ratio <= GROWTH_MAX, `${input}: ${ratio} times, ${milliseconds} ms for ${size}`)
      }
    })

  test('the measurement detects quadratic and cubic growth', () => {
    for (const [regex, size] of [
      [/\s+$/, 1 << 15],
      [/^\s*\s*\s*x/, 1 << 10],
    ] as const) {
      const { ratio } = growthOf((length) => {
        const input = `${' '.repeat(length)}y`
        return () => regex.test(input)
      }, size)
      assert.ok(ratio > GROWTH_MAX, `${regex}: ${ratio}`)
    }
  })
})
