import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { GetVersionResponseSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'

/** The JSON fields of the command. */
type Row = { node: string; endpoint: string; ok: boolean; took_ms: number; message: string }
type Home = Awaited<ReturnType<typeof temporaryFolder>>

const SECRET = 'node-secret-canary'

describe('sluice upstream test and sluice node test', () => {
  let home: Home
  let nodes: [FakeNode, FakeNode]
  let ticking: NodeJS.Timeout
  const genesis = ['same', 'same']

  before(async () => {
    home = await temporaryFolder()
    nodes = [await startFakeNode(), await startFakeNode()]
    nodes.forEach((node, at) => {
      node.respond = (method) => {
        if (method === 'getVersion') return { result: '{"solana-core":"4.2.1","feature-set":1}' }
        return method === 'getGenesisHash' ? { result: `"${genesis[at]}"` } : undefined
      }
      node.onGrpcCall = (call) => {
        const version = '{"version":{"package":"yellowstone","version":"15.1.2"}}'
        serveUnary(call, () => ({ ok: true, message: encodeMessage(GetVersionResponseSchema, { version }) }))
      }
    })
    ticking = setInterval(() => {
      for (const node of nodes) node.tick()
    }, 20)
  })
  after(async () => {
    clearInterval(ticking)
    for (const node of nodes) await node[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })

  const section = (name: string, node: Pick<FakeNode, 'rpc' | 'ws' | 'grpc'>) =>
    `[[upstreams.nodes]]\nname = "${name}"\nrpc = "${node.rpc}"\nws = "${node.ws}"\ngrpc = "${node.grpc}"\ncredential = "env:NODE_SECRET"\n`

  function run(toml: string, ...words: string[]) {
    writeFileSync(home.file('sluice.toml'), toml)
    const env = { SLUICE_STATE: home.file('state'), NODE_SECRET: SECRET }
    return sluiceHere([...words, '--config', home.file('sluice.toml')], env)
  }

  const both = () => `[upstreams]\nallowPrivate = true\n${section('one', nodes[0])}${section('two', nodes[1])}`

  it('checks every endpoint of every node, with its credential', async () => {
    const { code, stdout, stderr } = await run(both(), 'upstream', 'test', '-o', 'json')
    assert.equal(code, 0, stderr)
    const rows = JSON.parse(stdout) as Row[]
    assert.deepEqual(
      rows.map(({ node, endpoint, ok }) => [node, endpoint, ok]),
      ['one', 'two'].flatMap((name) => ['rpc', 'ws', 'grpc'].map((endpoint) => [name, endpoint, true])),
    )
    assert.match(rows[0]?.message ?? '', /^version 4\.2\.1, slot \d+, genesis same$/)
    assert.match(rows[1]?.message ?? '', /^slot \d+$/)
    assert.equal(rows[2]?.message, 'version yellowstone 15.1.2')
    assert.ok(nodes[0].calls.every(({ headers }) => headers['x-token'] === SECRET))
    assert.ok(!stdout.includes(SECRET) && !stderr.includes(SECRET))
    const one = await run(both(), 'upstream', 'test', 'two')
    assert.equal(one.code, 0)
    assert.ok(/^two /m.test(one.stdout) && !/^one /m.test(one.stdout))
    assert.equal((await run(both(), 'upstream', 'test', 'nobody')).code, 1)
    const none = await run('', 'upstream', 'test')
    assert.deepEqual([none.code, none.stdout], [0, ''])
  })

  it('reports what does not work, by endpoint, and exits with 1', async () => {
    // Two ports without a listener, and one with another protocol.
    const broken = { rpc: 'http://127.0.0.1:1', ws: 'ws://127.0.0.1:1', grpc: nodes[0].ws.replace('ws', 'http') }
    const { code, stdout } = await run(
      `[upstreams]\nallowPrivate = true\n${section('broken', broken)}`,
      'upstream',
      'test',
      '-o',
      'json',
    )
    assert.equal(code, 1)
    const rows = JSON.parse(stdout) as Row[]
    assert.deepEqual(
      rows.map(({ endpoint, ok }) => [endpoint, ok]),
      [
        ['rpc', false],
        ['ws', false],
        ['grpc', false],
      ],
    )
    assert.ok(rows.every(({ message }) => message.length > 3 && !message.includes('127.0.0.1')))
    // No connection is made to an address that is not allowed for nodes.
    const asked = nodes[0].requests.length
    const refused = await run(section('one', nodes[0]), 'upstream', 'test', '-o', 'json')
    assert.equal(refused.code, 1)
    assert.equal(nodes[0].requests.length, asked)
  })

  it('reports nodes on different chains; doctor does too', async () => {
    const good = await run(both(), 'doctor', '--json')
    const found = (text: string) => (JSON.parse(text) as { check: string; level: string; message: string }[]) ?? []
    const ofPool = (text: string) => found(text).filter(({ check }) => check === 'pool' || check === 'upstream')
    assert.deepEqual(
      ofPool(good.stdout).map(({ check, level }) => [check, level]),
      [
        ['upstream', 'ok'],
        ['upstream', 'ok'],
        ['pool', 'ok'],
      ],
    )
    genesis[1] = 'other'
    try {
      const { code, stderr } = await run(both(), 'upstream', 'test')
      assert.equal(code, 1)
      assert.match(stderr, /error: the nodes are on different chains \(one: same; two: other\)/)
      const reported = ofPool((await run(both(), 'doctor', '--json')).stdout)
      assert.ok(reported.some(({ check, level }) => check === 'pool' && level === 'bad'))
    } finally {
      genesis[1] = 'same'
    }
    nodes[1].slot -= 500
    const behind = await run(both(), 'upstream', 'test')
    nodes[1].slot += 500
    assert.equal(behind.code, 0)
    assert.match(behind.stderr, /warning: two is \d+ slots behind the best/)
  })

  it('a private address of a dedicated node is stored with a warning that names the key; one that is never allowed is refused', async () => {
    const refusing = '[upstreams]\nallowPrivate = false\n'
    const added = await run(refusing, 'node', 'add', 'private-1', '--rpc', 'http://10.0.0.7:8899')
    assert.equal(added.code, 0, added.stderr)
    assert.match(added.stderr, /warning: --rpc .*upstreams\.allowPrivate = true/)
    const set = await run(refusing, 'node', 'set', 'private-1', '--ws', 'ws://[::1]:8900')
    assert.match(set.stderr, /warning: --ws .*upstreams\.allowPrivate = true/)
    const metadata = await run(refusing, 'node', 'set', 'private-1', '--rpc', 'http://169.254.169.254')
    assert.notEqual(metadata.code, 0)
    assert.match(metadata.stderr, /--rpc: the address is link-local, which is never connected to/)
    const allowed = await run('[upstreams]\nallowPrivate = true\n', 'node', 'set', 'private-1', '--ws', 'ws://10.0.0.7')
    assert.equal(allowed.code, 0)
    assert.doesNotMatch(allowed.stderr, /warning/)
    await run(refusing, 'node', 'remove', 'private-1')
  })

  it('checks dedicated nodes with their own credentials', async () => {
    const toml = '[upstreams]\nallowPrivate = true\n'
    const [{ rpc, ws, grpc }] = nodes
    const add = ['node', 'add', 'ded-1', '--rpc', rpc, '--ws', ws, '--grpc', grpc, '--credential', 'env:NODE_SECRET']
    assert.equal((await run(toml, ...add)).code, 0)
    nodes[0].calls.length = 0
    const { code, stdout, stderr } = await run(toml, 'node', 'test', 'ded-1', '-o', 'json')
    assert.equal(code, 0, stderr)
    assert.deepEqual(
      (JSON.parse(stdout) as Row[]).map(({ node, endpoint, ok }) => [node, endpoint, ok]),
      ['rpc', 'ws', 'grpc'].map((endpoint) => ['ded-1', endpoint, true]),
    )
    assert.ok(nodes[0].calls.length > 0 && nodes[0].calls.every(({ headers }) => headers['x-token'] === SECRET))
    assert.equal((await run(toml, 'node', 'test', 'nobody')).code, 1)
  })
})
