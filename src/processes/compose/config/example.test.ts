import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'smol-toml'
import { configSchema } from './config.ts'
import { exampleConfig } from './example.ts'

const TEXT = exampleConfig({ host: 'rpc.example.net' })
const LINES = TEXT.split('\n')
/** Prose is indented further than one space, or is no assignment. */
const OPTION = /^# (?=\w+ = )/

/** The file with the # of these lines removed. */
const uncomment = (which: (at: number) => boolean): string =>
  LINES.map((line, at) => (which(at) ? line.replace(OPTION, '') : line)).join('\n')
const options = LINES.flatMap((line, at) => (OPTION.test(line) ? [at] : []))

test('writes arrays as TOML arrays, not as tables', () => {
  for (const line of [
    '# hosts = []',
    '# trustedProxies = []',
    '# store = { engine = "sqlite", file = "access.db" }',
    '# tls = { cert = "tls/fullchain.pem", key = "tls/key.pem" }',
  ])
    assert.ok(LINES.includes(line), line)
  assert.doesNotMatch(TEXT, /…/, 'every line is a value, not a gap to fill in')
})

test('the file as written has no effect but the host', () => {
  assert.deepEqual(configSchema.parse(parse(TEXT)), configSchema.parse({ host: 'rpc.example.net' }))
  const withState = exampleConfig({ host: 'h', state: 'data "1"' })
  assert.equal(configSchema.parse(parse(withState)).state, 'data "1"')
})

test('the # of any line can be removed alone, and the file is a valid configuration', () => {
  assert.ok(options.length > 150, `${options.length}`)
  const wrong = options.flatMap((only) => {
    try {
      const found = configSchema.safeParse(parse(uncomment((at) => at === only)))
      return found.success ? [] : [`${LINES[only]}: ${found.error.issues[0]?.message}`]
    } catch (error) {
      return [`${LINES[only]}: ${(error as Error).message}`]
    }
  })
  assert.deepEqual(wrong, [])
})

test('with the # of every line removed the file is TOML', () => {
  const all = parse(uncomment(() => true)) as { upstreams: { nodes: unknown[] }; plans: object }
  assert.equal(all.upstreams.nodes.length, 1)
  assert.deepEqual(Object.keys(all.plans), ['custom'])
})

test('has an example of a node, and names the commands for a dedicated one', () => {
  assert.match(TEXT, /^# nodes = \[\{ name = "fra-1", rpc = "https:/m)
  assert.match(TEXT, /sluice node add NAME --rpc URL, then sluice node assign NAME SUB/)
})
