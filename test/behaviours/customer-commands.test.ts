import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { type CliResult, temporaryFolder } from '../support/cli/run.ts'

type Home = AsyncDisposable & { run(...words: string[]): Promise<CliResult>; ok(...words: string[]): Promise<string> }

async function openHome(): Promise<Home> {
  const home = await temporaryFolder()
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  const ok = async (...words: string[]) => {
    const { code, stdout, stderr } = await run(...words)
    assert.equal(code, 0, `sluice ${words.join(' ')}: ${stderr}`)
    return stdout === '' ? stderr : stdout
  }
  await ok('customer', 'add', 'acme', '--contact', '@acme')
  await ok('sub', 'create', 'acme-prod', '--customer', 'acme', '--plan', 'starter', '--print-token')
  return { run, ok, [Symbol.asyncDispose]: () => home[Symbol.asyncDispose]() }
}

const jsonOf = async <T = Record<string, unknown>>(home: Home, ...words: string[]) =>
  JSON.parse(await home.ok(...words, '--json')) as T

test('customer rename keeps id, subscriptions and history; a taken name is refused', async () => {
  await using home = await openHome()
  const before = await jsonOf(home, 'customer', 'show', 'acme')
  await home.ok('customer', 'add', 'other')
  const taken = await home.run('customer', 'rename', 'acme', 'other')
  assert.notEqual(taken.code, 0)
  assert.match(taken.stderr, /a customer "other" already exists/)
  const wrong = await home.run('customer', 'rename', 'acme', 'Acme Corp')
  assert.match(wrong.stderr, /is not a customer name/)
  assert.match(await home.ok('customer', 'rename', 'acme', 'acme-corp'), /acme is now called acme-corp/)
  const after = await jsonOf<{ id: string; subscriptions: { name: string }[] }>(home, 'customer', 'show', 'acme-corp')
  assert.equal(after.id, before['id'])
  assert.equal(after.subscriptions[0]?.name, 'acme-prod')
  assert.match((await home.run('customer', 'show', 'acme')).stderr, /there is no customer "acme"/)
})

test('customer contact replaces the contact, within its length, and shows it', async () => {
  await using home = await openHome()
  await home.ok('customer', 'contact', 'acme', 'Ana, ana@acme.example')
  assert.match(await home.ok('customer', 'show', 'acme'), /contact +Ana, ana@acme\.example/)
  assert.match(await home.ok('customer', 'list'), /Ana, ana@acme\.example/)
  const long = await home.run('customer', 'contact', 'acme', 'x'.repeat(201))
  assert.notEqual(long.code, 0)
  assert.match(long.stderr, /at most 200 characters/)
  await home.ok('customer', 'contact', 'acme', 'x'.repeat(200))
  await home.ok('customer', 'contact', 'acme', '')
  assert.doesNotMatch(await home.ok('customer', 'show', 'acme'), /contact/)
})

test('customer remove refuses live subscriptions, cancels them with --force, and keeps the record', async () => {
  await using home = await openHome()
  const refused = await home.run('customer', 'remove', 'acme')
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /has subscriptions: acme-prod/)
  assert.match(refused.stderr, /--force/)
  const unconfirmed = await home.run('customer', 'remove', 'acme', '--force')
  assert.match(unconfirmed.stderr, /not confirmed/)
  assert.match(await home.ok('customer', 'remove', 'acme', '--force', '--dry-run'), /nothing changed/)
  assert.equal((await jsonOf(home, 'customer', 'show', 'acme'))['state'], 'active')

  assert.match(await home.ok('customer', 'remove', 'acme', '--force', '--yes'), /removed and cancelled: acme-prod/)
  assert.equal((await jsonOf(home, 'customer', 'show', 'acme'))['state'], 'removed')
  const sub = await jsonOf<{ state: string; tokens: unknown[] }>(home, 'sub', 'show', 'acme-prod')
  assert.deepEqual([sub.state, sub.tokens], ['cancelled', []])
  assert.deepEqual(await jsonOf(home, 'customer', 'list'), [])
  assert.equal((await jsonOf<unknown[]>(home, 'customer', 'list', '--all')).length, 1)
  const line = (await home.ok('audit', 'tail', '--lines', '1', '--json')).trim()
  const { action, subjects, after, subject_names } = JSON.parse(line) as Record<string, object>
  assert.equal(action, 'customer.remove')
  assert.deepEqual(after, { state: 'removed', cancelled: ['acme-prod'] })
  assert.deepEqual(Object.values(subject_names ?? {}), ['acme', 'acme-prod'])
  assert.deepEqual(Object.keys(subject_names ?? {}), subjects)

  const again = await home.run('customer', 'add', 'acme')
  assert.match(again.stderr, /a removed customer has the name "acme"/)
  assert.match(again.stderr, /customer resume acme/)
  const create = await home.run('sub', 'create', 'new', '--customer', 'acme', '--print-token')
  assert.match(create.stderr, /customer "acme" is removed/)
  await home.ok('customer', 'resume', 'acme')
  await home.ok('sub', 'create', 'new', '--customer', 'acme', '--print-token')
  assert.match(await home.ok('audit', 'verify'), /complete/)
})

test('a customer without live subscriptions is removed at once', async () => {
  await using home = await openHome()
  await home.ok('sub', 'cancel', 'acme-prod', '--yes')
  await home.ok('customer', 'remove', 'acme')
  assert.equal((await jsonOf(home, 'customer', 'show', 'acme'))['state'], 'removed')
  const misspelt = await home.run('customer', 'remove', 'acmee')
  assert.match(misspelt.stderr, /did you mean "acme"/)
})

test('audit tail has names beside ids', async () => {
  await using home = await openHome()
  const { id } = await jsonOf<{ id: string }>(home, 'customer', 'show', 'acme')
  const tail = await home.ok('audit', 'tail')
  assert.ok(tail.includes(`customer.add  acme (${id})`), tail)
  assert.match(tail, /sub\.create {2}acme-prod \(sub_\w+\) {2}acme \(cus_\w+\) {2}slc_…\w{4} \(tok_\w+\)/)
  const [line = ''] = (await home.ok('audit', 'tail', '--json')).split('\n')
  assert.ok(line.endsWith(`,"subject_names":{"${id}":"acme"}}`), line)
})

test('sub limit changes and clears one limit alone', async () => {
  await using home = await openHome()
  const overrides = async () =>
    (await jsonOf<{ overrides: Record<string, unknown> }>(home, 'sub', 'show', 'acme-prod')).overrides
  // Below the batch size of the plan, which then cannot be reached.
  const lowered = await home.ok('sub', 'limit', 'acme-prod', '--units-per-second', '5')
  assert.match(lowered, /note: batchItems is 100, but the bucket holds only 50 units/)
  await home.ok('sub', 'limit', 'acme-prod', '--ws-connections', '2')
  assert.deepEqual(await overrides(), { units_per_second: 5, ws_connections: 2 })
  await home.ok('sub', 'limit', 'acme-prod', '--clear', 'units-per-second')
  assert.deepEqual(await overrides(), { ws_connections: 2 })
  await home.ok('sub', 'limit', 'acme-prod', '--clear', 'all', '--grpc-streams', '3')
  assert.deepEqual(await overrides(), { grpc_streams: 3 })
  await home.ok('sub', 'limit', 'acme-prod', '--clear', 'all')
  assert.deepEqual(await overrides(), {})
  const misspelt = await home.run('sub', 'limit', 'acme-prod', '--clear', 'unit-per-second')
  assert.notEqual(misspelt.code, 0)
  assert.match(misspelt.stderr, /did you mean "units-per-second"/)
  const both = await home.run('sub', 'limit', 'acme-prod', '--clear', 'ws-connections', '--ws-connections', '3')
  assert.match(both.stderr, /both set and cleared/)
  const wrong = await home.run('sub', 'limit', 'acme-prod', '--sends-per-second', '99999')
  assert.match(wrong.stderr, /sendsPerSecond is 99999/, 'a limit that is set has to be reachable')
})

test('sub limit sets limits of single methods, and 0 and fractions where a plan may have them', async () => {
  await using home = await openHome()
  const overrides = async () =>
    (await jsonOf<{ overrides: Record<string, unknown> }>(home, 'sub', 'show', 'acme-prod')).overrides
  await home.ok('sub', 'limit', 'acme-prod', '--methods', 'getProgramAccounts:cost=20:per-second=0.5,getSlot:cost=2')
  const changed = await jsonOf(
    home,
    'sub',
    'limit',
    'acme-prod',
    '--methods',
    'getSlot:plan',
    '--sends-per-second',
    '0',
  )
  const methods = [{ method: 'getProgramAccounts', cost: 20, per_second: 0.5 }]
  assert.deepEqual(changed['overrides'], { sends_per_second: 0, methods }, 'the names of methods keep their case')
  assert.deepEqual(await overrides(), { sends_per_second: 0, methods })
  const shown = await home.ok('sub', 'show', 'acme-prod')
  assert.match(shown, /0 sendTransaction calls per second {2}\(override\)/)
  assert.match(shown, /0\.5 calls of getProgramAccounts per second {2}\(override\)/)
  assert.match(shown, /20 units {2}getProgramAccounts {2}\(override\)/)
  await home.ok('sub', 'limit', 'acme-prod', '--clear', 'methods,sends-per-second')
  assert.deepEqual(await overrides(), {})
  for (const wrong of ['getSlot', 'getSlot:cost=0.5', 'getSlot:rate=1'])
    assert.match((await home.run('sub', 'limit', 'acme-prod', '--methods', wrong)).stderr, /METHOD:cost=N/, wrong)
  assert.notEqual((await home.run('sub', 'limit', 'acme-prod', '--ws-connections', '0')).code, 0)
  const card = await home.ok(
    ...['sub', 'create', 'acme-slow', '--customer', 'acme', '--methods', 'getProgramAccounts:per-second=0.5'],
    '--print-token',
  )
  assert.match(card, /getProgramAccounts 0\.5\/s/)
})

test('products are added and removed, with what they need and what belongs to them', async () => {
  await using home = await openHome()
  const shown = () => jsonOf<{ products: string[]; indexer_users: string[] }>(home, 'sub', 'show', 'acme-prod')
  assert.match(
    await home.ok('sub', 'add-product', 'acme-prod', 'indexer'),
    /token stays the same\nnext: sluice indexer grant acme-prod/,
  )
  await home.ok('indexer', 'grant', 'acme-prod', '--print-token')
  assert.equal((await shown()).indexer_users.length, 1)
  assert.match((await home.run('sub', 'add-product', 'acme-prod', 'indexer')).stderr, /includes indexer already/)
  assert.match((await home.run('sub', 'add-product', 'acme-prod', 'indxer')).stderr, /did you mean "indexer"/)
  assert.match((await home.run('sub', 'remove-product', 'acme-prod', 'indexer')).stderr, /not confirmed/)
  await home.ok('sub', 'remove-product', 'acme-prod', 'indexer', '--yes')
  assert.deepEqual(await shown().then(({ products, indexer_users }) => [products, indexer_users]), [['bundle'], []])
  const last = await home.run('sub', 'remove-product', 'acme-prod', 'bundle', '--yes')
  assert.match(last.stderr, /the only product/)
  const line = (await home.ok('audit', 'tail', '--lines', '1', '--json')).trim()
  const { action, before, after } = JSON.parse(line) as { action: string; before: Products; after: Products }
  assert.deepEqual([action, before.products, after.products], ['sub.remove-product', ['bundle', 'indexer'], ['bundle']])
})

type Products = { products: string[] }
