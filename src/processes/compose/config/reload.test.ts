import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../test/support/cli/run.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import type { ConfigSection } from './config.ts'
import { createReload } from './reload.ts'
import { loadSettings } from './settings.ts'

const node = (name: string, more = '') =>
  `[[upstreams.nodes]]\nname = "${name}"\nrpc = "http://192.0.2.1:8899"\ngrpc = "http://192.0.2.1:10000"\n${more}\n`

/** A process on a configuration of these nodes, as `sluice serve` reloads it. */
async function start(
  text: string,
  files: Readonly<Record<string, string>> = {},
  usedSections?: readonly string[],
  sections: readonly ConfigSection[] = ['upstreams', 'metrics', 'billing', 'notices'],
  setSignIn?: (oidc: { readonly label: string } | undefined) => void,
) {
  const home = await temporaryFolder()
  for (const [name, content] of Object.entries(files)) writeFileSync(home.file(name), content, { mode: 0o600 })
  const file = home.file('sluice.toml')
  writeFileSync(file, text)
  const readSettings = () => loadSettings({ process: { env: {} } }, { config: file, state: home.path })
  const reload = createReload(await readSettings(), {
    log: { ...silentLogger },
    readSettings,
    env: {},
    checkedSectionsOf: () => sections,
    setNodes: () => Promise.resolve([]),
    ...(usedSections && { usedSections }),
    setSignIn,
  })
  return {
    write: (name: string, content: string) => writeFileSync(home.file(name), content, { mode: 0o600 }),
    reload(next: string) {
      writeFileSync(file, next)
      return reload()
    },
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  }
}

test('a node whose decoded stream is to be merged needs a restart, at every reload until then', async () => {
  await using on = await start(node('a') + node('b', 'decoded = true'))
  const expected = {
    changed: [],
    needRestart: ['upstreams.nodes[].decoded'],
    message: ['upstreams.nodes[].decoded needs a restart'],
  }
  const next = node('a', 'decoded = true') + node('b', 'decoded = true')
  assert.deepEqual(await on.reload(next), expected)
  assert.deepEqual(await on.reload(next), expected)
  assert.deepEqual(await on.reload(node('a') + node('b')), expected)
  const nothing = { changed: [], needRestart: [], message: ['nothing changed'] }
  assert.deepEqual(await on.reload(node('a') + node('b', 'decoded = true')), nothing)
})

test('a reload during another one reads the file after it', async () => {
  await using home = await temporaryFolder()
  const file = home.file('sluice.toml')
  const write = (name: string) => writeFileSync(file, node(name))
  write('a')
  let reads = 0
  const applied: (string | undefined)[] = []
  const [isApplying, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const load = () => loadSettings({ process: { env: {} } }, { config: file, state: home.path })
  const reload = createReload(await load(), {
    log: { ...silentLogger },
    readSettings() {
      reads += 1
      return load()
    },
    env: {},
    checkedSectionsOf: () => ['upstreams'],
    async setNodes({ config }) {
      isApplying.resolve()
      await mayGoOn.promise
      applied.push(config.upstreams.nodes[0]?.name)
      return []
    },
  })
  write('b')
  const first = reload()
  await isApplying.promise
  write('c')
  const second = reload()
  assert.equal(reads, 1)
  mayGoOn.resolve()
  await Promise.all([first, second])
  assert.deepEqual(applied, ['b', 'c'])
})

test('a reload that was refused does not hold up the next one', async () => {
  await using on = await start(node('a'))
  await assert.rejects(on.reload('[nonsense'), /stays in effect/)
  assert.deepEqual((await on.reload(node('a'))).message, ['nothing changed'])
})

test('the nodes in another order need no restart for their decoded streams', async () => {
  await using on = await start(node('a') + node('b', 'decoded = true'))
  const { changed, needRestart } = await on.reload(node('b', 'decoded = true') + node('a'))
  assert.deepEqual([changed, needRestart], [['upstreams.nodes'], []])
})

test('a value that needs a restart is reported at every reload', async () => {
  await using on = await start(node('a'))
  for (let at = 0; at < 2; at++) {
    const { changed, needRestart } = await on.reload(`${node('a')}[upstreams.calls]\nretryShare = 0.5\n`)
    assert.deepEqual([changed, needRestart], [[], ['upstreams.calls.retryShare']])
  }
})

test('a changed secret needs a restart, except those of nodes and webhooks, which are read again', async () => {
  const text = `${node('a', 'credential = "file:node"')}
[metrics]
bearer = "file:bearer"
[billing]
sink = "lago"
url = "https://billing.test"
key = "file:key"
[[notices.webhooks]]
name = "ops"
url = "https://hooks.test"
secrets = ["file:hook"]
`
  await using on = await start(text, { node: 'a', bearer: 'a', key: 'a', hook: 'a' })
  assert.deepEqual((await on.reload(text)).message, ['nothing changed'])
  for (const name of ['node', 'key', 'hook']) on.write(name, 'b')
  for (let at = 0; at < 2; at++) {
    const { changed, needRestart, message } = await on.reload(text)
    assert.deepEqual([changed, needRestart, message], [[], ['billing.key'], ['billing.key needs a restart']])
  }
  on.write('key', 'a')
  assert.deepEqual((await on.reload(text)).message, ['nothing changed'])
})

test('a removed plan is reported as removed, and not that its limits are in effect', async () => {
  const limits =
    'wsConnections = 1\nwsSubscriptions = 1\ngrpcStreams = 1\ngrpcAccountsPerStream = 1\nsendsPerSecond = 1\n'
  const gold = (unitsPerSecond: number) => `[plans.gold]\nunitsPerSecond = ${unitsPerSecond}\n${limits}`
  await using on = await start(gold(100))
  assert.deepEqual((await on.reload(gold(200))).message, ['plans.gold.unitsPerSecond is in effect'])
  const { changed, message } = await on.reload('')
  assert.ok(changed.includes('plans.gold.unitsPerSecond'))
  assert.deepEqual(message, [
    'plan gold is removed; subscriptions that have it have the smallest plan until: sluice sub limit SUB --plan PLAN',
  ])
  assert.deepEqual((await on.reload('')).message, ['nothing changed'])
})

test('a process that uses no plans does not report a removed one', async () => {
  const gold =
    '[plans.gold]\nunitsPerSecond = 100\nwsConnections = 1\nwsSubscriptions = 1\ngrpcStreams = 1\ngrpcAccountsPerStream = 1\nsendsPerSecond = 1\n'
  await using on = await start(gold, {}, ['log'])
  assert.deepEqual((await on.reload('')).message, ['nothing changed'])
})

test('a process of one service reports the addresses that customers use, of every service: its cards and documents name them', async () => {
  await using on = await start(node('a'), {}, ['log', 'upstreams'])
  const { needRestart } = await on.reload(
    `host = "rpc.example.net"\n${node('a')}[sender]\npublicUrl = "https://send.example.net"\nresendMs = 500\n[bundle.ws]\npublicUrl = "wss://rpc.example.net"\n`,
  )
  assert.deepEqual(needRestart.toSorted(), ['bundle.ws.publicUrl', 'host', 'sender.publicUrl'])
})

test('a process of one service reloads where the section of its service is off for `serve`, and refuses a port that another process has', async () => {
  const services: readonly ConfigSection[] = ['sender', 'indexer', 'execution']
  for (const part of services) {
    await using own = createServer()
    await once(own.listen(0, '127.0.0.1'), 'listening')
    await using other = createServer()
    await once(other.listen(0, '127.0.0.1'), 'listening')
    const listenOn = (server: typeof own) =>
      `[metrics]\nlisten = "127.0.0.1:0"\n[${part}]\nenabled = false\nlisten = "127.0.0.1:${(server.address() as AddressInfo).port}"\n`
    await using on = await start(listenOn(own), {}, ['log', 'metrics', part], ['metrics', part])
    assert.deepEqual((await on.reload(listenOn(own))).message, ['nothing changed'], part)
    await assert.rejects(on.reload(listenOn(other)), /is in use by another process/, part)
  }
})

test('sign-in is applied with the address that it is for: where that needs a restart, both do', async () => {
  const applied: (string | undefined)[] = []
  const signIn = (label: string, publicUrl: string) =>
    `[admin]\nlisten = "127.0.0.1:0"\npublicUrl = "${publicUrl}"\n[admin.oidc]\nissuer = "https://login.example.net"\nclientId = "sluice"\nlabel = "${label}"\nroles = { ops = "owner" }\n`
  const [present, other] = ['https://a.example.net', 'https://b.example.net']
  await using on = await start(signIn('first', present), {}, undefined, undefined, (oidc) => applied.push(oidc?.label))
  assert.deepEqual((await on.reload(signIn('second', present))).message, ['admin.oidc.label is in effect'])
  for (let at = 0; at < 2; at++) {
    const { changed, needRestart } = await on.reload(signIn('third', other))
    assert.deepEqual([changed, needRestart.toSorted()], [[], ['admin.oidc.label', 'admin.publicUrl']])
  }
  assert.deepEqual(applied, ['second'])
  assert.deepEqual((await on.reload(signIn('third', present))).changed, ['admin.oidc.label'])
  assert.deepEqual(applied, ['second', 'third'])
})
