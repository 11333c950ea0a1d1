import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { startLocalnetProcess } from '../../src/processes/localnet.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { ALONE, sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const anyPort = { host: '127.0.0.1', port: 0 }

async function call(url: string, method: string, headers: Record<string, string> = {}): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method }),
  })
  return ((await response.json()) as { result: unknown }).result
}

test('localnet set changes slot length and consensus of a running sluice localnet at its next slot', async () => {
  await using home = await temporaryFolder()
  const { lifecycle, localnet } = await startLocalnetProcess(
    { stateDir: home.path, rpc: anyPort, ws: anyPort, grpc: anyPort, slotMs: 100 },
    { log: silentLogger, clock: systemClock, random: secureRandom, env: ALONE },
  )
  try {
    const { chain } = localnet
    const set = (...words: string[]) => sluiceHere(['localnet', 'set', ...words, '--state', home.path])
    const url = `http://127.0.0.1:${localnet.rpc.port}`
    assert.equal(await call(url, 'getAgGenesisCert'), null)

    const done = await set('--slot-ms', '60', '--consensus', 'alpenglow')
    assert.equal(done.code, 0, done.stderr)
    assert.match(done.stderr, /^from slot \d+ on: slots of 60 ms, consensus alpenglow\n$/)
    await until('the next slot has begun', () => chain.consensus === 'alpenglow' && chain.slotMs === 60)
    await until('there is a certificate', async () => (await call(url, 'getAgGenesisCert')) !== null)

    const json = JSON.parse((await set('--consensus', 'tower', '--json')).stdout) as Record<string, unknown>
    assert.deepEqual([json['slot_ms'], json['consensus'], typeof json['from_slot']], [60, 'tower', 'number'])
    await until('the tower is back', async () => (await call(url, 'getAgGenesisCert')) === null)

    for (const [words, reason] of [
      [[], /nothing to change/],
      [['--slot-ms', '10'], /10 is not a slot length: give a whole number from 50 to 10000/],
      [['--slot-ms', '100.5'], /100\.5 is not a slot length/],
      [['--slot-ms', 'fast'], /"fast" is not a slot length/],
      [['--consensus', 'votes'], /tower.*alpenglow/],
    ] as const) {
      const refused = await set(...words)
      assert.notEqual(refused.code, 0)
      assert.match(refused.stderr, reason)
    }
    assert.equal(chain.slotMs, 60)
  } finally {
    lifecycle.stop('test')
    await lifecycle.stopped
  }
  const gone = await sluiceHere(['localnet', 'set', '--slot-ms', '100', '--state', home.path])
  assert.notEqual(gone.code, 0)
})

test('localnet set reaches the embedded chain of sluice serve, and is refused where there is none', async () => {
  await using home = await temporaryFolder()
  {
    await using running = serve({
      cwd: home.path,
      env: { SLUICE_LOCALNET__ENABLED: 'true', SLUICE_LOCALNET__SLOT_MS: '100', SLUICE_LOCALNET__CONSENSUS: 'tower' },
    })
    const chain = `http://${await running.address('localnet rpc')}`
    await running.line(/"msg":"started"/)
    const done = await sluiceHere(['localnet', 'set', '--consensus', 'alpenglow', '--state', home.file('.sluice')])
    assert.equal(done.code, 0, done.stderr)
    await until('there is a certificate', async () => (await call(chain, 'getAgGenesisCert')) !== null)
    assert.equal(await running.stop(), 0)
  }
  await using running = serve({ cwd: home.path, env: { SLUICE_UPSTREAMS__NODES: undefined }, args: ['--no-demo'] })
  await running.line(/"msg":"started"/)
  const refused = await sluiceHere(['localnet', 'set', '--slot-ms', '100', '--state', home.file('.sluice')])
  assert.equal(refused.code === 0, false)
  assert.match(refused.stderr, /this process runs no embedded chain/)
})

test('sluice localnet without a further word runs the chain, with the flags of localnet run', async () => {
  const help = await sluiceHere(['localnet', '--help'])
  assert.equal(help.code, 0)
  assert.match(help.stdout, /localnet set/)
  await using home = await temporaryFolder()
  const refused = await sluice(['localnet', '--slot-ms', '10'], { cwd: home.path })
  assert.match(refused.stderr, /"10" is not a slot length/)
})
