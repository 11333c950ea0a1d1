import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { configSchema } from '../../src/processes/compose/config/config.ts'
import { executionSource } from '../../src/processes/compose/config/served.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { startTestExecution } from '../support/execution/start.ts'
import { helloOf, openStream } from '../support/execution/stream-reader.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { serve } from '../support/process/serve.ts'

const NODE = { name: 'a', rpc: 'http://192.0.2.1:8899' }

describe('the source of the execution service', () => {
  for (const [name, given, source] of [
    ['nothing is configured', {}, 'simulated'],
    ['real nodes', { upstreams: { nodes: [NODE] } }, undefined],
    [
      'real nodes, simulated data requested',
      { upstreams: { nodes: [NODE] }, execution: { simulated: true } },
      'simulated',
    ],
    ['simulated data excluded', { execution: { simulated: false } }, undefined],
    ['a ring', { execution: { ring: '/ring' } }, 'ring'],
    ['real nodes and a ring', { upstreams: { nodes: [NODE] }, execution: { ring: '/ring' } }, 'ring'],
    ['an EVM node', { execution: { node: { rpc: 'http://192.0.2.1' } } }, 'evm-node'],
  ] as const)
    test(name, () => assert.equal(executionSource(configSchema.parse(given)), source))
})

describe('simulated data is marked', () => {
  test('in Hello and on every HTTP response; Status and Health have the fields of the specification only', async () => {
    for (const isSimulated of [true, false]) {
      await using service = await startTestExecution({ isSimulated })
      await using client = await openStream(`${service.ws}/v1/ws`)
      await client.until(1)
      assert.equal(helloOf(client).source.simulated, isSimulated)
      for (const [path, init] of [
        ['/v1/status', {}],
        ['/v1/tps', {}],
        ['/health', {}],
        ['/metrics', {}],
        ['/no-such-path', {}],
        ['/', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' }],
      ] as const) {
        const { headers } = await fetch(`${service.http}${path}`, init)
        assert.equal(headers.get('x-data-source'), isSimulated ? 'simulated' : null, path)
      }
      const status = await fetch(`${service.http}/v1/status`, { headers: { origin: 'https://elsewhere.example' } })
      assert.match(status.headers.get('access-control-expose-headers') ?? '', /x-data-source/, 'also for web pages')
      assert.deepEqual(Object.keys((await status.json()) as object), [
        ...['status', 'block_number', 'connected_clients', 'uptime_secs', 'last_event_age_secs'],
        ...['ring_seqno', 'oldest_seqno', 'newest_seqno'],
      ])
      assert.equal(service.registry.value('sluice_execution_simulated'), isSimulated ? 1 : 0)
    }
  })

  test('on the handover card and in sluice status', async () => {
    await using home = await temporaryFolder()
    await using running = serve({ cwd: home.path, env: { SLUICE_EXECUTION__ENABLED: 'true' } })
    await running.line(/"msg":"started"/)
    assert.match(running.stdout(), /^ +stream +http\S+ +simulated EVM chain, not a real one$/m)
    assert.match(running.stdout(), /^Dashboard +http\S+ +simulated data$/m)
    const { stdout } = await sluiceHere(['status', '--state', home.file('.sluice')])
    assert.match(stdout, /^execution +127\.0\.0\.1:\d+ +simulated data$/m)
  })
})

describe('with real nodes', () => {
  test('the service is off unless it has a source, and the log, status and the card say so', async () => {
    await using node = await startFakeNode()
    const env = { SLUICE_EXECUTION__ENABLED: 'true' }
    await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }], { env })
    const line = await gateway.running.line(/"msg":"the execution service is off"/)
    for (const key of ['execution.ring', 'execution.node', 'execution.simulated']) assert(line.includes(key), line)
    assert.doesNotMatch(gateway.running.stdout(), /"service":"execution"|simulated chain/)
    const { stdout } = await gateway.sluice('status')
    assert.match(stdout, /^execution +off: no source of events: set execution\.ring/m)
    const json = JSON.parse((await gateway.sluice('status', '--json')).stdout) as { off: { name: string }[] }
    assert.deepEqual(
      json.off.map(({ name }) => name),
      ['execution'],
    )
    const made = await gateway.sluice('sub', 'create', 'second', '--customer', 'acme', '--print-token')
    assert.doesNotMatch(made.stdout, /^ +stream |SLUICE_STREAM|simulated/m)
  })

  test('simulated data is served on request, and marked', async () => {
    await using node = await startFakeNode()
    const env = { SLUICE_EXECUTION__ENABLED: 'true', SLUICE_EXECUTION__SIMULATED: 'true' }
    await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }], { env })
    const response = await fetch(`http://${await gateway.running.address('execution')}/v1/status`)
    assert.deepEqual([response.status, response.headers.get('x-data-source')], [200, 'simulated'])
    const made = await gateway.sluice('sub', 'create', 'second', '--customer', 'acme', '--print-token')
    assert.match(made.stdout, /stream .*simulated EVM chain/)
  })

  test('sluice execution does not start without a source; a ring and simulated data exclude each other', async () => {
    await using home = await temporaryFolder()
    const nodes = '[[upstreams.nodes]]\nname = "a"\nrpc = "http://192.0.2.1:8899"\n'
    for (const [config, message] of [
      [nodes, /the execution service has no source of events: set execution\.ring/],
      ['[execution]\nring = "ring"\nsimulated = true\n', /execution\.ring and execution\.simulated are set/],
    ] as const) {
      writeFileSync(home.file('sluice.toml'), config)
      await using refused = serve({ command: 'execution', cwd: home.path })
      assert.equal(await refused.exit(), 78)
      assert.match(refused.stderr(), message)
    }
  })
})
