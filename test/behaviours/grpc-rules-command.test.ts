import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'

const OWNER = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'

type Shown = { limits: Record<string, unknown>; overrides: Record<string, unknown> }

test('rules of gRPC streams are set, shown and reset for one subscription', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  await run('customer', 'add', 'acme')
  const created = await run(
    ...['sub', 'create', 'acme-prod', '--customer', 'acme', '--print-token', '--grpc-kinds', 'slots,blocks_meta'],
  )
  assert.equal(created.code, 0, created.stderr)
  const set = await run('sub', 'limit', 'acme-prod', '--grpc-blocked-owners', OWNER, '--grpc-resume', 'yes')
  assert.equal(set.code, 0, set.stderr)
  const shown = async () => JSON.parse((await run('sub', 'show', 'acme-prod', '--json')).stdout) as Shown
  const own = { grpc_kinds: ['slots', 'blocks_meta'], grpc_blocked_owners: [OWNER], grpc_resume: true }
  assert.deepEqual((await shown()).overrides, own)
  const { stdout } = await run('sub', 'show', 'acme-prod')
  assert.match(stdout, /allowed gRPC filters: slots, blocks_meta +\(override\)/)
  assert.match(stdout, /gRPC streams resume when their node is lost +\(override\)/)

  for (const [flag, value, message] of [
    ['--grpc-kinds', 'slots,nonsense', /"slots,nonsense" is not a list of kinds.*accounts,slots/],
    ['--grpc-resume', 'perhaps', /"perhaps" is not a value for --grpc-resume: write yes, no or plan/],
    ['--grpc-blocked-owners', 'not-an-address', /grpcBlockedOwners.*base58/s],
  ] as const) {
    const { code, stderr } = await run('sub', 'limit', 'acme-prod', flag, value)
    assert.notEqual(code, 0)
    assert.match(stderr, message)
  }
  assert.deepEqual((await shown()).overrides, own)

  const back = ['--grpc-kinds', 'unlimited', '--grpc-blocked-owners', 'none', '--grpc-resume', 'plan']
  assert.equal((await run('sub', 'limit', 'acme-prod', ...back)).code, 0)
  const { overrides, limits } = await shown()
  assert.deepEqual(overrides, { grpc_kinds: null, grpc_blocked_owners: [] })
  assert.equal(limits['grpc_resume'], false)
})

test('config check refuses two servers on one port, and names both', async () => {
  await using home = await temporaryFolder()
  const check = async (toml: string) => {
    writeFileSync(home.file('sluice.toml'), toml)
    return sluiceHere(['config', 'check', '--config', home.file('sluice.toml')], { SLUICE_STATE: home.file('.sluice') })
  }
  const servers = (rpc: string, ws: string) => `[bundle.rpc]\nlisten = "${rpc}"\n[bundle.ws]\nlisten = "${ws}"\n`
  const equal = await check(servers('127.0.0.1:18899', '127.0.0.1:18899'))
  assert.equal(equal.code, 78)
  assert.match(equal.stderr, /bundle\.rpc\.listen and bundle\.ws\.listen have the same port/)
  const everywhere = servers('0.0.0.0:18899', '127.0.0.1:18899').replace('899"\n', '899"\nplaintext = "behind-proxy"\n')
  assert.match((await check(everywhere)).stderr, /same port: 0\.0\.0\.0:18899 and 127\.0\.0\.1:18899/)
  for (const fine of [servers('127.0.0.1:0', '127.0.0.1:0'), servers('127.0.0.1:18899', '127.0.0.2:18899')]) {
    const { code, stderr } = await check(fine)
    assert.equal(code, 0, stderr)
  }
})
