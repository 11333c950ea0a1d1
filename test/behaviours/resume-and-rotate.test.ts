import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { type CliResult, temporaryFolder } from '../support/cli/run.ts'

type Home = AsyncDisposable & { run(...words: string[]): Promise<CliResult> }

async function openHome(): Promise<Home> {
  const home = await temporaryFolder()
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  await run('customer', 'add', 'acme')
  const { code, stderr } = await run('sub', 'create', 'acme-prod', '--customer', 'acme', '--print-token')
  assert.equal(code, 0, stderr)
  return { run, [Symbol.asyncDispose]: () => home[Symbol.asyncDispose]() }
}

test('a subscription of a suspended customer is not called active, and the command that serves it again is named', async () => {
  await using home = await openHome()
  await home.run('customer', 'suspend', 'acme', '--yes')
  const refused = await home.run('sub', 'resume', 'acme-prod')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /"acme-prod" is not suspended itself, but its customer "acme" is/)
  assert.match(refused.stderr, /fix: .*sluice customer resume acme/)

  await home.run('sub', 'suspend', 'acme-prod', '--yes')
  const resumed = await home.run('sub', 'resume', 'acme-prod')
  assert.equal(resumed.code, 0)
  assert.doesNotMatch(resumed.stderr, /active again/)
  assert.match(resumed.stderr, /still refused: customer acme is suspended; .*: sluice customer resume acme/)

  await home.run('customer', 'resume', 'acme')
  await home.run('sub', 'suspend', 'acme-prod', '--yes')
  assert.equal((await home.run('sub', 'resume', 'acme-prod')).stderr, 'subscription acme-prod is active again\n')
})

test('a rotation with a grace asks before it revokes a token whose grace has not passed', async () => {
  await using home = await openHome()
  const rotate = (...more: string[]) =>
    home.run('token', 'rotate', 'acme-prod', '--grace', '1h', '--print-token', ...more)
  assert.equal((await rotate()).code, 0)
  const unconfirmed = await rotate()
  assert.equal(unconfirmed.code, 2)
  assert.match(
    unconfirmed.stderr,
    /revokes the earlier token slc_…\w{4} of acme-prod, which works until .* UTC, at once/,
  )
  const tokens = async () =>
    (await home.run('token', 'list', 'acme-prod')).stdout.match(/\b(active|retiring|revoked)\b/g)?.toSorted()
  assert.deepEqual(await tokens(), ['active', 'retiring'])
  assert.match((await home.run('sub', 'show', 'acme-prod')).stdout, /retiring, works until \d{4}-\d\d-\d\d \S+ UTC/)
  const rotated = await rotate('--yes')
  assert.equal(rotated.code, 0)
  assert.match(rotated.stderr, /is revoked/)
  assert.deepEqual(await tokens(), ['active', 'retiring', 'revoked'])
})

test('a list of subscriptions that is empty because of its filters says so', async () => {
  await using home = await openHome()
  const { stderr } = await home.run('sub', 'list', '--state-is', 'suspended', '--customer', 'acme')
  assert.equal(stderr, 'no subscription of acme is suspended\n')
})

test('--state with the state of a subscription is not taken for a folder', async () => {
  await using home = await openHome()
  const { code, stderr } = await home.run('sub', 'list', '--state', 'cancelled')
  assert.equal(code, 2)
  assert.match(stderr, /fix: .*--state-is cancelled/)
})

test('config show has the value of a switch whose name ends like that of a secret', async () => {
  await using home = await openHome()
  const { stdout } = await home.run('config', 'show')
  assert.match(stdout, /^bundle\.ws\.queryToken +false /m)
  assert.match(stdout, /^indexer\.tokenInPassword +false /m)
})
