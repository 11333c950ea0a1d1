import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { z } from 'zod'
import { makeTestFolder } from '../files/test-folder.ts'
import { envNameOf } from './env.ts'
import { ConfigError, loadConfig } from './file.ts'
import { isSecretRef, SECRET_REF_RULE } from './secret-ref.ts'

const listen = z.strictObject({ host: z.string().default('127.0.0.1'), port: z.int().min(0).max(65_535).default(8899) })
const schema = z.strictObject({
  logLevel: z.enum(['debug', 'info', 'warn']).default('info'),
  bundle: z
    .strictObject({
      listen: listen.prefault({}),
      ws: z.strictObject({ queryToken: z.boolean().default(false) }).prefault({}),
      database: z.string().refine(isSecretRef, SECRET_REF_RULE).optional(),
      allow: z.array(z.string()).default([]),
    })
    .prefault({}),
  upstreams: z.array(z.strictObject({ name: z.string(), url: z.string() })).default([]),
  plans: z.record(z.string(), z.strictObject({ unitsPerSecond: z.number() })).default({}),
  source: z
    .union([z.strictObject({ ring: z.string() }), z.strictObject({ node: z.string(), trace: z.boolean() })])
    .optional(),
})

type Given = { text?: string; env?: Record<string, string>; flags?: { path: string[]; value: unknown }[] }

async function load({ text, env = {}, flags = [] }: Given) {
  using position = makeTestFolder()
  const file = position.file('sluice.toml')
  if (text !== undefined) writeFileSync(file, text)
  return await loadConfig({ schema, file: text === undefined ? undefined : file, env, flags })
}

async function issuesOf(given: Given): Promise<string[]> {
  try {
    await load(given)
  } catch (error) {
    assert(error instanceof ConfigError)
    assert.equal(error.code, 'config-invalid')
    return error.message.split('\n').map((line) => line.replace(/^\S*sluice\.toml/, 'F'))
  }
  return assert.fail('was accepted')
}

test('uses the defaults without a file', async () => {
  const config = await load({})
  assert.equal(config.value.bundle.listen.port, 8899)
  assert.deepEqual(config.originOf(['bundle', 'listen', 'port']), { from: 'default' })
  assert.equal(config.file, undefined)
})

test('a flag overrides the environment, which overrides the file, which overrides the default; each value has its origin', async () => {
  const config = await load({
    text: 'logLevel = "warn"\n[bundle.listen]\nhost = "127.0.0.2"\nport = 1\n',
    env: {
      SLUICE_BUNDLE__LISTEN__PORT: '2',
      SLUICE_LOG_LEVEL: 'debug',
      SLUICE_SEED: '7',
      SLUICE_BUNDLE__WS__QUERYTOKEN: 'true',
    },
    flags: [{ path: ['logLevel'], value: 'info' }],
  })
  const { value } = config
  assert.deepEqual(value.bundle.listen, { host: '127.0.0.2', port: 2 })
  assert.equal(value.logLevel, 'info')
  assert.equal(value.bundle.ws.queryToken, true)
  assert.deepEqual(config.originOf(['logLevel']), { from: 'flag' })
  assert.deepEqual(config.originOf(['bundle', 'listen', 'port']), {
    from: 'env',
    variable: 'SLUICE_BUNDLE__LISTEN__PORT',
  })
  const host = config.originOf(['bundle', 'listen', 'host'])
  assert(host.from === 'file' && host.line === 3 && host.column === 1 && host.file.endsWith('/sluice.toml'))
  const shown = config.entries().map(({ path, origin }) => `${path.join('.')} ${origin.from}`)
  assert.deepEqual(shown, [
    'logLevel flag',
    'bundle.listen.host file',
    'bundle.listen.port env',
    'bundle.ws.queryToken env',
    'bundle.allow default',
    'upstreams default',
    'plans default',
  ])
})

test('parses values of the environment as TOML, and as text where the schema expects text', async () => {
  const { value } = await load({
    env: {
      SLUICE_BUNDLE__LISTEN__HOST: '10',
      SLUICE_BUNDLE__ALLOW: '["a", "b"]',
      SLUICE_UPSTREAMS: '[{ name = "a", url = "http://h" }]',
      SLUICE_PLANS__GOLD__UNITS_PER_SECOND: '12.5',
    },
  })
  assert.equal(value.bundle.listen.host, '10')
  assert.deepEqual(value.bundle.allow, ['a', 'b'])
  assert.deepEqual(value.upstreams, [{ name: 'a', url: 'http://h' }])
  assert.deepEqual(value.plans, { gold: { unitsPerSecond: 12.5 } })
  assert.equal(envNameOf(['bundle', 'ws', 'queryToken']), 'SLUICE_BUNDLE__WS__QUERY_TOKEN')
})

test('a list or table of the environment replaces that of the file, and its mistakes name the variable', async () => {
  const text = '[[upstreams]]\nname = "of-file"\nurl = "http://f"\n[bundle.listen]\nhost = "127.0.0.2"\nport = 1\n'
  const config = await load({
    text,
    env: { SLUICE_UPSTREAMS: '[{ name = "a", url = "http://h" }]', SLUICE_BUNDLE__LISTEN: '{ port = 2 }' },
  })
  const origins = Object.fromEntries(config.entries().map(({ path, origin }) => [path.join('.'), origin]))
  assert.deepEqual(origins['upstreams.0.name'], { from: 'env', variable: 'SLUICE_UPSTREAMS' })
  assert.deepEqual(origins['bundle.listen.port'], { from: 'env', variable: 'SLUICE_BUNDLE__LISTEN' })
  assert.deepEqual(await issuesOf({ text, env: { SLUICE_UPSTREAMS: '[{ name = "a", url = 5 }]' } }), [
    'SLUICE_UPSTREAMS upstreams[0].url: expected string, received number',
  ])
  const flags = [{ path: ['upstreams'], value: [{ name: 'b', url: 5 }] }]
  assert.deepEqual(await issuesOf({ text, flags }), ['command line upstreams[0].url: expected string, received number'])
})

test('a syntax error names line and column and does not quote the file', async () => {
  const issues = await issuesOf({ text: 'a = 1\npassword = "hunter22\n' })
  assert.equal(issues.length, 1)
  assert.match(issues[0] ?? '', /^F:2:\d+ not TOML: /)
  assert(!issues.join().includes('hunter22'))
})

test('reports all mistakes at once, each with its position and a suggestion where one is near', async () => {
  const text = `loglevel = "info"
[bundle]
alow = []
[bundle.listen]
port = "80"
[bundle.ws]
  queryTokn = true
[[upstreams]]
name = "a"
[[upstreams]]
name = "b"
url = 5
[plans.gold]
unitsPerSecond = 1
burst = 2
`
  assert.deepEqual(
    (await issuesOf({ text })).toSorted(),
    [
      'F:10:3 upstreams[0].url: is required (string)',
      'F:12:1 upstreams[1].url: expected string, received number',
      'F:15:1 plans.gold.burst: unknown key',
      'F:1:1 loglevel: unknown key (did you mean logLevel?)',
      'F:3:1 bundle.alow: unknown key (did you mean allow?)',
      'F:5:1 bundle.listen.port: expected number, received string',
      'F:7:3 bundle.ws.queryTokn: unknown key (did you mean queryToken?)',
    ]
      .map((line) => line.replace('F:10:3 upstreams[0]', 'F:8:3 upstreams[0]'))
      .toSorted(),
  )
})

test('reports values out of range, outside a list or union, and literal secrets', async () => {
  const text = `logLevel = "inof"
[bundle]
database = "hunter22"
[bundle.listen]
port = 70000
[source]
node = "x"
`
  const issues = await issuesOf({ text })
  assert(!issues.join().includes('hunter22'))
  assert.match(issues[0] ?? '', /^F:1:1 logLevel: must be one of debug, info, warn \(did you mean info\?\)$/)
  assert(
    issues.some((line) => /^F:5:1 bundle\.listen\.port: .*<=65535$/.test(line)),
    issues.join('\n'),
  )
  assert(
    issues.some((line) => line.startsWith('F:3:1 bundle.database: secrets are given by reference')),
    issues.join('\n'),
  )
  assert(
    issues.some((line) => line.startsWith('F:6:2 source.trace: is required')),
    issues.join('\n'),
  )
})

test('mistakes in the environment and on the command line name their source', async () => {
  const issues = await issuesOf({
    env: {
      SLUICE_BUNDLE__LISTEN__PORT: 'abc',
      SLUICE_BUNDLE__LISTN__PORT: '1',
      SLUICE_NOWHERE__X: '1',
      SLUICE_NOWHERE: '1',
    },
    flags: [{ path: ['logLevel'], value: 'loud' }],
  })
  assert.deepEqual(issues.toSorted(), [
    'SLUICE_BUNDLE__LISTEN__PORT bundle.listen.port: expected number, received string',
    'SLUICE_BUNDLE__LISTN__PORT bundle has no key that LISTN could stand for (did you mean SLUICE_BUNDLE__LISTEN?)',
    'SLUICE_NOWHERE__X the config has no key that NOWHERE could stand for',
    'command line logLevel: must be one of debug, info, warn',
  ])
})

test('an empty variable without a level sets nothing, as SLUICE_CONFIG and SLUICE_STATE', async () => {
  const config = await load({ text: 'logLevel = "warn"\n', env: { SLUICE_LOG_LEVEL: '' } })
  assert.equal(config.value.logLevel, 'warn')
  assert.deepEqual(await issuesOf({ env: { SLUICE_BUNDLE__LISTEN__PORT: '' } }), [
    'SLUICE_BUNDLE__LISTEN__PORT bundle.listen.port: expected number, received string',
  ])
})

test('names a file that cannot be read', async () => {
  await assert.rejects(
    loadConfig({ schema, file: '/nowhere/sluice.toml', env: {} }),
    /\/nowhere\/sluice\.toml cannot be read/,
  )
})

test('a folder in the place of the file is not to be written anew', async () => {
  using folder = makeTestFolder()
  await assert.rejects(loadConfig({ schema, file: folder.path, env: {} }), (error: unknown) => {
    assert(error instanceof ConfigError)
    assert.equal(error.fix, `Name the file in this folder: --config ${folder.file('sluice.toml')}`)
    return true
  })
})

test('a key named __proto__ changes no prototype', async () => {
  const [issue] = await issuesOf({ text: '[__proto__]\npolluted = 1\n' }).catch(() => [''])
  assert.equal(({} as { polluted?: number }).polluted, undefined)
  assert(issue !== undefined)
})

test('refuses text that is not UTF-8 and names the line', async () => {
  using folder = makeTestFolder()
  const file = folder.file('sluice.toml')
  writeFileSync(file, Buffer.from('logLevel = "warn"\n# caf\xe9\n', 'latin1'))
  await assert.rejects(loadConfig({ schema, file, env: {} }), /sluice\.toml:2:1 not TOML: this line is not UTF-8/)
})

test('reads no more of a file than a config may have, in bytes', async () => {
  using folder = makeTestFolder()
  const file = folder.file('sluice.toml')
  writeFileSync(file, `#${'é'.repeat(524_288)}`)
  for (const large of [file, '/dev/zero'])
    await assert.rejects(loadConfig({ schema, file: large, env: {} }), /is larger than 1048576 bytes/)
})

test('a value that fits no member of a union gets all of them, and the nearest word', async () => {
  const rate = z.union([z.number(), z.union([z.literal('unlimited'), z.null()])])
  const messageFor = (text: string) =>
    loadConfig({ schema: z.strictObject({ rate }), env: { SLUICE_RATE: text } }).then(
      () => assert.fail('was accepted'),
      (error: unknown) => (error as ConfigError).message,
    )
  assert.equal(
    await messageFor('"unlimted"'),
    'SLUICE_RATE rate: expected number or unlimited (did you mean unlimited?)',
  )
  assert.equal(await messageFor('true'), 'SLUICE_RATE rate: expected number or unlimited')
})
